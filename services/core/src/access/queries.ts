import { idFromUuid, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { plainArray, type Queryable, run, statement } from '../database/statement.ts'
import { type ApiKeyRow, storedApiKeyColumns } from '../database/tables/api-key.ts'
import { type MemberRow, storedMemberColumns } from '../database/tables/member.ts'
import { type Columns, type FoundRow, jsonOf, rowFrom, type WithMac } from '../database/tables/table.ts'
import { storedWorkspaceColumns, type WorkspaceRow } from '../database/tables/workspace.ts'
import { type FoundMove, moveOf } from '../places/claims.ts'

type Found<Of extends Columns> = FoundRow<Of> | null
/** A key with its workspace and the membership of its owner, as JSON. All are null in a row without a key. */
type FoundAccess = {
  accessRevision: number
  now: Date
  key: Found<typeof storedApiKeyColumns>
  workspace: Found<typeof storedWorkspaceColumns>
  member: Found<typeof storedMemberColumns>
  move: FoundMove
}

// One statement, so that keys and revision are of one snapshot.
const findAccessStatement = statement<FoundAccess>(
  'find-access',
  `select r.revision as "accessRevision", now() as now,
     case when k.id is not null then ${jsonOf(storedApiKeyColumns, 'k')} end as key,
     case when w.id is not null then ${jsonOf(storedWorkspaceColumns, 'w')} end as workspace,
     case when m.user_id is not null then ${jsonOf(storedMemberColumns, 'm')} end as member,
     ${moveOf('k.workspace_id')} as move
   from access_revision r
   left join api_key k on k.id = any ($1::uuid[])
   left join workspace w on w.id = k.workspace_id
   left join member m on m.workspace_id = k.workspace_id and m.user_id = k.owner_user_id`,
)

/** A key as stored, with its workspace, and its last move. `owner`: null if the owner has never been a member. */
export type StoredAccess = {
  key: WithMac<ApiKeyRow>
  workspace: WithMac<WorkspaceRow> | null
  owner: WithMac<MemberRow> | null
  move: FoundMove
}

/** Those of these keys that exist, at an access revision and a time of PostgreSQL. */
export async function findStoredAccess(
  db: Queryable,
  uuids: Uuid<'apiKey'>[],
): Promise<{ revision: number; now: Date; found: StoredAccess[] }> {
  const rows = await run(db, findAccessStatement, [plainArray(uuids)])
  const { accessRevision: revision, now } = rows[0]!
  const found = rows.flatMap(({ key, workspace, member, move }) => {
    if (!key) return []
    return {
      key: rowFrom(storedApiKeyColumns, key),
      workspace: workspace && rowFrom(storedWorkspaceColumns, workspace),
      owner: member && rowFrom(storedMemberColumns, member),
      move,
    }
  })
  return { revision, now, found }
}

const findChangesStatement = statement<{
  revision: number
  epoch: string | null
  now: Date
  continues: boolean
  hasMoves: boolean
  id: Uuid<'apiKey'> | null
}>(
  'find-access-changes',
  // The trigger on access_revision writes the epoch. A revision without one has not been taken by the service.
  `select r.revision, current.epoch, now() as now, known.revision is not null as continues, k.id,
     exists (select from workspace_move m where m.access_revision > $1) as "hasMoves"
   from access_revision r
   left join lateral (select * from access_change where revision = r.revision limit 1) current on true
   left join lateral (select * from access_change where revision = $1 and epoch = $2 limit 1) known on true
   left join lateral (
     select id from api_key
     where known.revision is not null and api_key.access_revision > $1
     order by api_key.access_revision limit 1001) k on true`,
)
const mostChanges = 1000

/**
 * The keys that changed after a revision. `complete` is false, and `apiKeys` empty, if there are more than 1000 or if this
 * database has another history than the one that the caller has followed (`epoch`). `hasMoves`: whether workspaces have arrived or begun
 * to leave since; also true if `complete` is false.
 */
export async function findAccessChanges(
  db: Queryable,
  { since, epoch: known }: { since: number; epoch: string | null },
) {
  const rows = await run(db, findChangesStatement, [since, known])
  const { revision, epoch, now, continues, hasMoves } = rows[0]!
  const apiKeys = rows.flatMap(({ id }) => (id === null ? [] : idFromUuid('apiKey', id)))
  const complete = continues && apiKeys.length <= mostChanges
  return { revision, epoch, now, complete, hasMoves: hasMoves || !complete, apiKeys: complete ? apiKeys : [] }
}

const markUsedStatement = statement(
  'mark-keys-used',
  `with used as materialized (
     select given.id, least(given.at, now()) as at, least(given.at, now()) - interval '1 minute' as minute_before
     from unnest($1::uuid[], $2::timestamptz[]) as given (id, at)
     where given.at > now() - interval '1 hour')
   update api_key k set last_used_at = used.at from used
   where k.id = used.id and (k.last_used_at is null or k.last_used_at < used.minute_before)
     -- Those of a workspace that is leaving this place stay as they are, and must not keep the others from being recorded.
     and not exists (select from ledger l where l.workspace_id = k.workspace_id and l.status = 'MOVING')`,
)

/**
 * Records when keys were used, with a resolution of one minute. What was longer ago than an hour is ignored: whoever has the token of a
 * gateway could report each minute of the past.
 */
export async function markKeysUsed(db: Queryable, uses: { apiKey: string; usedAt: Date }[]): Promise<void> {
  const known = uses.flatMap(({ apiKey, usedAt }) => {
    const id = uuidFromId('apiKey', apiKey)
    return id ? [{ id, usedAt: usedAt.toISOString() }] : []
  })
  // Sorted, so that the reports of two gateways cannot deadlock.
  known.sort((a, b) => (a.id < b.id ? -1 : 1))
  await run(db, markUsedStatement, [
    plainArray(known.map(({ id }) => id)),
    plainArray(known.map(({ usedAt }) => usedAt)),
  ])
}
