import { idFromUuid, type KeyAccess, type Scope, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { plainArray, type Queryable, run, statement } from '../database/statement.ts'
import type { ApiKeyRow } from '../database/tables/api-key.ts'

/** A key with its workspace and the membership of its owner, as stored. `id` is null in a row without a key. */
export type AccessRow = Omit<ApiKeyRow, 'id' | 'scopes' | 'status'> & {
  accessRevision: number
  now: Date
  id: Uuid<'apiKey'> | null
  status: KeyAccess['status']
  scopes: Scope[]
  ipAllowlist: string[]
  mac: Buffer
  workspaceName: string
  workspaceCreatedAt: Date
  workspaceUpdatedAt: Date
  workspaceDeletedAt: Date | null
  workspaceRevision: number
  workspaceMac: Buffer
  memberCreatedAt: Date
  memberRemovedAt: Date | null
  memberRevision: number
  /** Null if the owner has never been a member. */
  memberMac: Buffer | null
}

// One statement, so that keys and revision are of one snapshot.
const findAccessStatement = statement<AccessRow>(
  'find-access',
  `select r.revision as "accessRevision", now() as now,
     k.id, k.workspace_id as "workspaceId", k.owner_user_id as "ownerUserId", k.name, k.status, k.scopes,
     k.ip_allowlist as "ipAllowlist", k.secret, k.secret_version as "secretVersion",
     k.previous_secret as "previousSecret", k.previous_secret_until as "previousSecretUntil",
     k.expires_at as "expiresAt", k.deleted_at as "deletedAt", k.created_at as "createdAt",
     k.updated_at as "updatedAt", k.revision, k.mac,
     w.name as "workspaceName", w.created_at as "workspaceCreatedAt", w.updated_at as "workspaceUpdatedAt",
     w.deleted_at as "workspaceDeletedAt", w.revision as "workspaceRevision", w.mac as "workspaceMac",
     m.created_at as "memberCreatedAt", m.removed_at as "memberRemovedAt", m.revision as "memberRevision",
     m.mac as "memberMac"
   from access_revision r
   left join api_key k on k.id = any ($1::uuid[])
   left join workspace w on w.id = k.workspace_id
   left join member m on m.workspace_id = k.workspace_id and m.user_id = k.owner_user_id`,
)

/** The rows of these keys; a single row without a key if there are none. */
export function findAccessRows(db: Queryable, uuids: Uuid<'apiKey'>[]): Promise<AccessRow[]> {
  return run(db, findAccessStatement, [plainArray(uuids)])
}

const findChangesStatement = statement<{
  revision: number
  epoch: string | null
  now: Date
  continues: boolean
  id: Uuid<'apiKey'> | null
}>(
  'find-access-changes',
  // The trigger on access_revision writes the epoch. A revision without one has not been taken by the service.
  `select r.revision, current.epoch, now() as now, known.revision is not null as continues, k.id
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
 * database has another history than the one that the caller has followed (`epoch`).
 */
export async function findAccessChanges(
  db: Queryable,
  { since, epoch: known }: { since: number; epoch: string | null },
) {
  const rows = await run(db, findChangesStatement, [since, known])
  const { revision, epoch, now, continues } = rows[0]!
  const apiKeys = rows.flatMap(({ id }) => (id === null ? [] : idFromUuid('apiKey', id)))
  const complete = continues && apiKeys.length <= mostChanges
  return { revision, epoch, now, complete, apiKeys: complete ? apiKeys : [] }
}

const markUsedStatement = statement(
  'mark-keys-used',
  `update api_key k set last_used_at = least(used.at, now())
   from unnest($1::uuid[], $2::timestamptz[]) as used (id, at)
   where k.id = used.id and (k.last_used_at is null or k.last_used_at < used.at - interval '1 minute')`,
)

/** Records when keys were used, with a resolution of one minute. */
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
