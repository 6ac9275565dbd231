import { idFromUuid, type LeaseName, maxWebhooks, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type { Em } from '../database/orm.ts'
import { runIn } from '../database/run.ts'
import { plainArray, type Queryable, run, statement } from '../database/statement.ts'
import { type FoundRow, rowFrom, selectColumns, type WithMac, withMac } from '../database/tables/table.ts'
import { type WebhookRow, webhookColumns } from '../database/tables/webhook.ts'

/** How many due webhooks a call looks at for each one that it leases: other calls have leased or locked some of them. */
const lookahead = 4

/**
 * Core sets no lease and no attempt further ahead than this. A later time was written by somebody else: it does not keep a
 * webhook from its deliveries, and `ledger verify` reports it.
 */
export const furthestAttempt = '2 hours'

/** These conditions and `dueAt` are those of the index webhook_due. */
const isActive = `w.deleted_at is null and w.status = 'ACTIVE'`
const dueAt = 'greatest(w.leased_until, w.next_attempt_at)'
const hasCome = `${dueAt} <= statement_timestamp()`
const isTooFar = `${dueAt} > statement_timestamp() + interval '${furthestAttempt}'`
/** For rows that are looked up by ID. Without the CASE, PostgreSQL may read the whole index webhook_due instead. */
const isDue = `case when ${isActive} then ${hasCome} or ${isTooFar} end`

/** How many workspaces with webhooks one statement looks at. */
const workspacesAtATime = 500
/** More rows of a workspace are not looked at: some of them were not written by the service. */
const mostDue = maxWebhooks

const firstWorkspace = (condition: string) =>
  `left join lateral (
     select w.workspace_id from webhook w where ${isActive} and ${condition} order by w.workspace_id, ${dueAt} limit 1)`
const firstDue = (condition: string) =>
  `(select w.id, w.leased_until, w.position from webhook w
    where w.workspace_id = l.workspace_id and ${isActive} and ${condition} order by ${dueAt} limit ${mostDue + 1})`

type Found = {
  ids: Uuid<'webhook'>[]
  last: Uuid<'workspace'>
  hasWrapped: boolean
  isComplete: boolean
  isCrowded: boolean
}

/** The rows that it reads do not depend on how many webhooks a workspace has: it goes from one workspace to the next by index. */
const findDueStatement = statement<Found>(
  'find-due-webhooks',
  `with recursive visited (id, place, has_wrapped) as (
     select $1::uuid, 0, $2::boolean
     union all
     select coalesce(next.id, lowest.id), place + 1, has_wrapped or next.id is null
     from visited
       ${firstWorkspace('w.workspace_id > visited.id')} next (id) on true
       ${firstWorkspace('next.id is null and not visited.has_wrapped')} lowest (id) on true
     where place < ${workspacesAtATime} and coalesce(next.id, lowest.id) is not null
       and not ((has_wrapped or next.id is null) and coalesce(next.id, lowest.id) > $3)),
   due as materialized (
     select l.workspace_id, first.id, first.leased_until, first.position <> l.position as has_events
     from visited join ledger l on l.workspace_id = visited.id and l.status = 'OPEN' and l.workspace_id <> all (coalesce($6::uuid[], '{}'))
       cross join lateral (${firstDue(hasCome)} union all ${firstDue(isTooFar)}) first
     where place > 0)
   select
     array(
       select id::text from (
         select id, leased_until, row_number() over (partition by workspace_id order by leased_until, id) as turn
         from due where has_events and id <> all ($4::uuid[])) turns
       where turn = 1 or $6 is null
       order by turn, leased_until, id limit $5) as ids,
     last.id as last, last.has_wrapped as "hasWrapped", last.place < ${workspacesAtATime} as "isComplete",
     exists (select from due group by workspace_id having count(*) > ${mostDue}) as "isCrowded"
   from (select * from visited order by place desc limit 1) last`,
)

/** What a search leaves out. `workspaces`: if it is not null, also all but one webhook of each other workspace. */
export type Except = { webhooks: readonly Uuid<'webhook'>[]; workspaces: readonly Uuid<'workspace'>[] | null }

/** Where a search goes on: it began after the workspace `begin`, and ends there, once it has wrapped around. */
export type Place = { begin: Uuid<'workspace'>; last: Uuid<'workspace'>; hasWrapped: boolean }

/**
 * Webhooks of the next workspaces that have events to deliver: several times `size`. Each workspace gets its first one before any gets a
 * second; within a workspace, the webhook whose last lease ended first comes first.
 *
 * @returns `isComplete`: there are no further workspaces. `isCrowded`: a workspace has more rows that are due than a client can create,
 *   and not all of them were looked at
 */
export async function findDueWebhooks(
  db: Queryable,
  { begin, last, hasWrapped }: Place,
  size: number,
  { webhooks, workspaces }: Except,
): Promise<Found> {
  const values = [last, hasWrapped, begin, plainArray(webhooks), lookahead * size, workspaces && plainArray(workspaces)]
  const [found] = await run(db, findDueStatement, values)
  return found!
}

const findDueAmongStatement = statement<{ id: Uuid<'webhook'> }>(
  'find-due-among-webhooks',
  `select id from (
     select w.id, w.leased_until,
       row_number() over (partition by w.workspace_id order by w.leased_until, w.id) as turn
     from unnest($1::uuid[]) known (id) join webhook w on w.id = known.id join ledger l on l.workspace_id = w.workspace_id
     where ${isDue} and l.status = 'OPEN' and l.position <> w.position and w.id <> all ($2::uuid[])
       and w.workspace_id <> all (coalesce($4::uuid[], '{}'))) due
   where turn = 1 or $4 is null
   order by turn, leased_until, id limit $3`,
)

/** Those of these webhooks that have events to deliver, in the same order. */
export async function findDueAmong(
  db: Queryable,
  known: readonly Uuid<'webhook'>[],
  size: number,
  { webhooks, workspaces }: Except,
): Promise<Uuid<'webhook'>[]> {
  const values = [plainArray(known), plainArray(webhooks), lookahead * size, workspaces && plainArray(workspaces)]
  const rows = await run(db, findDueAmongStatement, values)
  return rows.map(({ id }) => id)
}

const rowColumns = withMac(webhookColumns)
const readRowsStatement = statement<FoundRow<typeof rowColumns>>(
  'read-webhook-rows',
  `select ${selectColumns(rowColumns, 'w')} from webhook w where w.id > $1 order by w.id limit $2`,
)

/** Rows of webhooks of all workspaces, also of deleted ones, in the order of their IDs. */
export async function readWebhookRows(
  db: Queryable,
  after: Uuid<'webhook'>,
  size: number,
): Promise<WithMac<WebhookRow>[]> {
  const rows = await run(db, readRowsStatement, [after, size])
  return rows.map(row => rowFrom(rowColumns, row))
}

const lockDueStatement = statement<{ id: Uuid<'webhook'> }>(
  'lock-due-webhooks',
  `select w.id from unnest($1::uuid[]) with ordinality as due (id, place) join webhook w on w.id = due.id
     join ledger l on l.workspace_id = w.workspace_id
   where ${isDue} and l.status = 'OPEN' order by due.place limit $2 for no key update of w skip locked`,
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
  `with ended as materialized (
     select given.*, statement_timestamp() as now,
       case when given.position is null then statement_timestamp() + interval '${unreadablePause}' end as next_attempt_at
     from unnest($1::uuid[], $2::uuid[], $3::bigint[]) given (id, generation, position))
   update webhook w set leased_generation = null, leased_until = ended.now,
     position = case when w.generation = ended.generation then coalesce(ended.position, w.position) else w.position end,
     next_attempt_at = coalesce(ended.next_attempt_at, w.next_attempt_at)
   from ended
   where w.id = ended.id and w.leased_generation = ended.generation`,
)

/** Ends leases without deliveries. The position of a webhook that was changed since stays as it is. */
export async function endLeases(db: Queryable, leases: readonly EmptyLease[]): Promise<void> {
  if (leases.length === 0) return
  const ids = leases.map(({ webhookId }) => uuidFromId('webhook', webhookId))
  const columns = [ids, leases.map(({ generation }) => generation), leases.map(({ position }) => position)]
  await run(db, endLeasesStatement, columns.map(plainArray))
}
