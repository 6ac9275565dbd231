import { idFromUuid, type LeaseName, uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { runIn } from '../database/run.ts'
import { plainArray, type Queryable, run, statement } from '../database/statement.ts'

/** How many due webhooks a call looks at for each one that it locks: other calls have locked some of them. */
const lookahead = 4

const lockDueStatement = statement<{ id: string }>(
  'lock-due-webhooks',
  `select w.id
   from unnest(array(
     select id from (
       select w.id, w.leased_until,
         row_number() over (partition by w.workspace_id order by w.leased_until, w.id) as turn
       from webhook w join ledger l on l.workspace_id = w.workspace_id
       where w.status = 'ACTIVE' and w.deleted_at is null and l.status = 'OPEN' and l.position > w.position
         and w.next_attempt_at <= statement_timestamp() and w.leased_until <= statement_timestamp()) due
     order by turn, leased_until, id limit $1)) with ordinality due (id, place)
     join webhook w on w.id = due.id
   where w.status = 'ACTIVE' and w.deleted_at is null
     and w.next_attempt_at <= statement_timestamp() and w.leased_until <= statement_timestamp()
   order by due.place limit $2 for no key update of w skip locked`,
)

/**
 * Locks up to `size` webhooks that have events to deliver and are not locked by another transaction. Each workspace gets its
 * first one before any gets a second; within a workspace, the webhook whose last lease ended first comes first.
 *
 * @returns their UUIDs
 */
export async function lockDueWebhooks(em: Em, size: number): Promise<string[]> {
  const rows = await runIn(em)(lockDueStatement, [lookahead * size, size])
  return rows.map(({ id }) => id)
}

const findRevokedStatement = statement<{ id: string; generation: number }>(
  'find-revoked-leases',
  `select held.id, held.generation
   from unnest($1::uuid[], $2::bigint[]) held (id, generation)
     join webhook w on w.id = held.id join ledger l on l.workspace_id = w.workspace_id
   where w.generation <> held.generation or l.status <> 'OPEN'`,
)

/** Those of the leases whose webhook was changed or leased again since, or whose workspace is not open. */
export async function findRevokedLeases(db: Queryable, held: readonly LeaseName[]): Promise<LeaseName[]> {
  const known = held.flatMap(({ webhookId, generation }) => {
    const id = uuidFromId('webhook', webhookId)
    return id ? [{ id, generation }] : []
  })
  if (known.length === 0) return []
  const values = [plainArray(known.map(({ id }) => id)), plainArray(known.map(({ generation }) => generation))]
  const rows = await run(db, findRevokedStatement, values)
  return rows.map(({ id, generation }) => ({ webhookId: idFromUuid('webhook', id), generation }))
}

/** A lease without deliveries. `position`: all events up to here are of other types; null if no events could be read. */
export type EmptyLease = LeaseName & { position: number | null }

/** How long a webhook whose events could not be read waits. */
const unreadablePause = '5 s'

const endLeasesStatement = statement(
  'end-webhook-leases',
  `update webhook w set leased_generation = 0, leased_until = statement_timestamp(),
     position = case when w.generation = ended.generation then coalesce(ended.position, w.position) else w.position end,
     next_attempt_at = case when ended.position is null
       then greatest(w.next_attempt_at, statement_timestamp() + interval '${unreadablePause}') else w.next_attempt_at end
   from unnest($1::uuid[], $2::bigint[], $3::bigint[]) ended (id, generation, position)
   where w.id = ended.id and w.leased_generation = ended.generation`,
)

/** Ends leases without deliveries. The position of a webhook that was changed since stays as it is. */
export async function endLeases(db: Queryable, leases: readonly EmptyLease[]): Promise<void> {
  if (leases.length === 0) return
  const ids = leases.map(({ webhookId }) => uuidFromId('webhook', webhookId))
  const columns = [ids, leases.map(({ generation }) => generation), leases.map(({ position }) => position)]
  await run(db, endLeasesStatement, columns.map(plainArray))
}
