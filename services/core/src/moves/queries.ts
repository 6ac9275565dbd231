import type { KeyObject } from 'node:crypto'
import type { Uuid } from '@workspace-wallet/contract'
import { findActions } from '../audit/records.ts'
import type { Run } from '../database/run.ts'
import { type Queryable, run, statement } from '../database/statement.ts'

const lockUnauditedRowsStatement = statement(
  'lock-rows-that-change-without-audit',
  `select (select count(*) from (select from webhook where workspace_id = $1 for no key update) w)
     + (select count(*) from (select from api_key where workspace_id = $2 for no key update) k)`,
)

/** Locks the webhooks and API keys of a workspace: deliveries and uses change them without an entry in the audit. */
export async function lockUnauditedRows(runInTransaction: Run, workspaceId: Uuid<'workspace'>): Promise<void> {
  await runInTransaction(lockUnauditedRowsStatement, [workspaceId, workspaceId])
}

const pageSize = 500
const findArrivalsStatement = statement<{ id: number }>(
  'find-arrivals',
  `select id from audit where workspace_id = $1 and action = 'workspace.arrive' and id < $2 order by id desc limit ${pageSize}`,
)

/** Whether a workspace has arrived in a place with a move of this generation, as the genuine entries of its audit there say. */
export async function hasArrived(
  db: Queryable,
  chainKey: KeyObject,
  { workspaceId, generation }: { workspaceId: Uuid<'workspace'>; generation: number },
): Promise<boolean> {
  for (let before = Number.MAX_SAFE_INTEGER; ; ) {
    const ids = (await run(db, findArrivalsStatement, [workspaceId, before])).map(({ id }) => id)
    const arrivals = await findActions(db, chainKey, ids)
    if (arrivals.some(({ isGenuine, after }) => isGenuine && generationIn(after) === generation)) return true
    if (ids.length < pageSize) return false
    before = ids.at(-1)!
  }
}

const generationIn = (after: unknown) => (after as { generation?: unknown } | null)?.generation
