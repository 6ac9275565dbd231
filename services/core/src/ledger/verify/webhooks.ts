import type { Snapshot } from '../../database/snapshot.ts'
import { type Check, rowIds, runChecks } from './checks.ts'
import type { Findings } from './findings.ts'

/** Checks the positions of webhooks in the event log, which their MACs do not cover. */
export function checkWebhooks(snapshot: Snapshot, workspaceId: string | null, findings: Findings): Promise<void> {
  return runChecks(snapshot, workspaceId, findings, [positions])
}

const positions: Check = {
  rule: 'webhook-position',
  sql: `
    select w.workspace_id, w.id, w.position, l.position
    from public.webhook w join public.ledger l on l.workspace_id = w.workspace_id
    where w.deleted_at is null and ($1::uuid is null or w.workspace_id = $1) and (w.position <= l.position) is not true
    order by w.workspace_id, w.id`,
  violation: ([workspace, id, position, head]) => ({
    message: `its position is ${position}, and the log of its workspace ends at ${head}`,
    ids: rowIds('webhook', workspace, id),
  }),
}
