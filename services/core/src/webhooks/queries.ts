import { idFromUuid, type LeaseName, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { runIn } from '../database/run.ts'
import { plainArray, type Queryable, run, statement } from '../database/statement.ts'

/** How many due webhooks a call looks at for each one that it leases: other calls have leased or locked some of them. */
const lookahead = 4

/**
 * Core sets no lease and no attempt further ahead than this. A later time was written by somebody else: it does not keep a
 * webhook from its deliveries, and `ledger verify` reports it.
 */
export const furthestAttempt = '2 hours'

const hasCome = (column: string) =>
  `(w.${column} <= statement_timestamp() or w.${column} > statement_timestamp() + interval '${furthestAttempt}')`
const isDue = `w.status = 'ACTIVE' and w.deleted_at is null and ${hasCome('next_attempt_at')} and ${hasCome('leased_until')}`

const findDueStatement = statement<{ id: Uuid<'webhook'> }>(
  'find-due-webhooks',
  `select id from (
     select w.id, w.leased_until,
       row_number() over (partition by w.workspace_id order by w.leased_until, w.id) as turn
     from webhook w join ledger l on l.workspace_id = w.workspace_id
     where ${isDue} and l.status = 'OPEN' and l.position <> w.position and w.id <> all ($1::uuid[])) due
   order by turn, leased_until, id limit $2`,
)

/**
 * Webhooks that have events to deliver: several times `size`. Each workspace gets its first one before any gets a second;
 * within a workspace, the webhook whose last lease ended first comes first.
 *
 * @param except webhooks to leave out
 */
export async function findDueWebhooks(
  db: Queryable,
  size: number,
  except: readonly Uuid<'webhook'>[],
): Promise<Uuid<'webhook'>[]> {
  const rows = await run(db, findDueStatement, [plainArray(except), lookahead * size])
  return rows.map(({ id }) => id)
}

const lockDueStatement = statement<{ id: Uuid<'webhook'> }>(
  'lock-due-webhooks',
  `select w.id from unnest($1::uuid[]) with ordinality as due (id, place) join webhook w on w.id = due.id
   where ${isDue} order by due.place limit $2 for no key update of w skip locked`,
)

/** Locks up to `size` of these webhooks, in their order: those that are still due and not locked by another transaction. */
export async function lockDueWebhooks(
  em: Em,
  uuids: readonly Uuid<'webhook'>[],
  size: number,
): Promise<Uuid<'webhook'>[]> {
  const rows = await runIn(em)(lockDueStatement, [plainArray(uuids), size])
  return rows.map(({ id }) => id)
}

const findRevokedStatement = statement<{ id: Uuid<'webhook'>; generation: string }>(
  'find-revoked-leases',
  `select held.id, held.generation
   from unnest($1::uuid[], $2::uuid[]) held (id, generation)
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
  `update webhook w set leased_generation = null, leased_until = statement_timestamp(),
     position = case when w.generation = ended.generation then coalesce(ended.position, w.position) else w.position end,
     next_attempt_at = case when ended.position is null
       then statement_timestamp() + interval '${unreadablePause}' else w.next_attempt_at end
   from unnest($1::uuid[], $2::uuid[], $3::bigint[]) ended (id, generation, position)
   where w.id = ended.id and w.leased_generation = ended.generation`,
)

/** Ends leases without deliveries. The position of a webhook that was changed since stays as it is. */
export async function endLeases(db: Queryable, leases: readonly EmptyLease[]): Promise<void> {
  if (leases.length === 0) return
  const ids = leases.map(({ webhookId }) => uuidFromId('webhook', webhookId))
  const columns = [ids, leases.map(({ generation }) => generation), leases.map(({ position }) => position)]
  await run(db, endLeasesStatement, columns.map(plainArray))
}
