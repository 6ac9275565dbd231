import { uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { type Run, runIn } from '../database/run.ts'
import { statement } from '../database/statement.ts'

const lockDueStatement = statement<{ id: string }>(
  'lock-due-webhooks',
  `with due as materialized (
     select w.id, w.leased_until,
       row_number() over (partition by w.workspace_id order by w.leased_until, w.id) as turn
     from webhook w join ledger l on l.workspace_id = w.workspace_id
     where w.status = 'ACTIVE' and w.deleted_at is null and l.status = 'OPEN' and l.position > w.position
       and w.next_attempt_at <= statement_timestamp() and w.leased_until <= statement_timestamp())
   select w.id from due join webhook w on w.id = due.id
   where w.status = 'ACTIVE' and w.deleted_at is null
     and w.next_attempt_at <= statement_timestamp() and w.leased_until <= statement_timestamp()
   order by due.turn, due.leased_until, due.id limit $1 for no key update of w skip locked`,
)

/**
 * Locks up to `size` webhooks that have events to deliver and are not locked by another transaction. Each workspace gets its
 * first one before any gets a second; within a workspace, the webhook whose last lease ended first comes first.
 *
 * @returns their UUIDs
 */
export async function lockDueWebhooks(em: Em, size: number): Promise<string[]> {
  const rows = await runIn(em)(lockDueStatement, [size])
  return rows.map(({ id }) => id)
}

const endLeaseStatement = statement(
  'end-webhook-lease',
  `update webhook set position = coalesce($1::bigint, position), leased_until = statement_timestamp(),
     leased_generation = 0
   where id = $2 and generation = $3`,
)

/** Ends a lease without deliveries. `position`: the new position of the webhook; null if it does not change. */
export async function endLease(
  run: Run,
  { webhookId, generation, position }: { webhookId: string; generation: number; position: number | null },
): Promise<void> {
  await run(endLeaseStatement, [position, uuidFromId('webhook', webhookId), generation])
}
