import type { Uuid } from '@workspace-wallet/contract'
import type { Run } from '../database/run.ts'
import { statement } from '../database/statement.ts'

const lockUnauditedRowsStatement = statement(
  'lock-rows-that-change-without-audit',
  `select (select count(*) from (select from webhook where workspace_id = $1 for no key update) w)
     + (select count(*) from (select from api_key where workspace_id = $2 for no key update) k)`,
)

/** Locks the webhooks and API keys of a workspace: deliveries and uses change them without an entry in the audit. */
export async function lockUnauditedRows(run: Run, workspaceId: Uuid<'workspace'>): Promise<void> {
  await run(lockUnauditedRowsStatement, [workspaceId, workspaceId])
}
