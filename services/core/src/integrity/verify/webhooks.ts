import { furthestAttempt } from '../../webhooks/queries.ts'
import { type Check, rowIds, runChecks } from './checks.ts'
import type { Scope } from './scope.ts'

/** Checks what the MACs of webhooks do not cover: their positions in the event log, and their next attempts. */
export function checkWebhooks({ snapshot, workspaceId, findings }: Scope): Promise<void> {
  return runChecks(snapshot, workspaceId, findings, [positions, attempts])
}

const positions: Check = {
  rule: 'webhook-position',
  sql: `
    select w.workspace_id, w.id, w.position, l.position
    from {here}.webhook w join {here}.ledger l on l.workspace_id = w.workspace_id
    where w.deleted_at is null and ($1::uuid is null or w.workspace_id = $1) and (w.position <= l.position) is not true
    order by w.workspace_id, w.id`,
  violation: ([workspace, id, position, head]) => ({
    message: `its position is ${position}, and the log of its workspace ends at ${head}`,
    ids: rowIds('webhook', workspace, id),
  }),
}

/** The clock of PostgreSQL may have been set back since: the times of the ledger never are. */
const attempts: Check = {
  rule: 'webhook-attempt',
  sql: `
    select w.workspace_id, w.id, w.next_attempt_at, w.leased_until
    from {here}.webhook w left join {here}.ledger l on l.workspace_id = w.workspace_id
    where w.deleted_at is null and ($1::uuid is null or w.workspace_id = $1)
      and (greatest(w.next_attempt_at, w.leased_until) <= greatest(now(), l.last_posted_at) + interval '${furthestAttempt}'
        and w.next_attempt_at is not null and w.leased_until is not null) is not true
    order by w.workspace_id, w.id`,
  violation: ([workspace, id, nextAttemptAt, leasedUntil]) => ({
    message: `its next attempt is at ${nextAttemptAt}, and its lease ends at ${leasedUntil}`,
    ids: rowIds('webhook', workspace, id),
  }),
}
