import { idFromUuid, type KeyAccess, type Scope, uuidFromId } from '../../contract/index.ts'
import { plainArray, type Queryable, run, statement } from '../db/statement.ts'

type AccessRow = {
  revision: number
  id: string | null
  workspaceId: string
  status: KeyAccess['status']
  expiresAt: Date | null
  workspaceExists: boolean
  ownerIsMember: boolean
  scopes: Scope[]
  ipAllowlist: string[]
  secret: string
  secretVersion: number
  previousSecret: string | null
  previousSecretUntil: Date | null
}

// One snapshot: what the keys may do, and the revision at which that held.
const findAccessStatement = statement<AccessRow>(
  'find-access',
  `select r.revision, k.id, k.workspace_id as "workspaceId", k.status, k.expires_at as "expiresAt",
     w.id is not null as "workspaceExists", m.user_id is not null as "ownerIsMember",
     k.scopes, k.ip_allowlist as "ipAllowlist", k.secret, k.secret_version as "secretVersion",
     case when k.previous_secret_until > now() then k.previous_secret end as "previousSecret",
     k.previous_secret_until as "previousSecretUntil"
   from access_revision r
   left join api_key k on k.id = any ($1::uuid[]) and k.deleted_at is null
   left join workspace w on w.id = k.workspace_id and w.deleted_at is null
   left join member m on m.workspace_id = k.workspace_id and m.user_id = k.owner_user_id`,
)

/** What these keys may do; unknown, deleted and malformed ones are left out. */
export async function findAccess(db: Queryable, apiKeys: string[]): Promise<{ revision: number; keys: KeyAccess[] }> {
  const uuids = apiKeys.flatMap(apiKey => uuidFromId('apiKey', apiKey) ?? [])
  const rows = await run(db, findAccessStatement, [plainArray(uuids)])
  return { revision: rows[0]!.revision, keys: rows.flatMap(row => (row.id === null ? [] : toAccess(row.id, row))) }
}

function toAccess(id: string, row: AccessRow): KeyAccess {
  const { status, expiresAt, workspaceExists, ownerIsMember, scopes, ipAllowlist } = row
  const secrets = [{ version: row.secretVersion, ciphertext: row.secret, validUntil: null as Date | null }]
  if (row.previousSecret !== null)
    secrets.push({
      version: row.secretVersion - 1,
      ciphertext: row.previousSecret,
      validUntil: row.previousSecretUntil,
    })
  return {
    apiKey: idFromUuid('apiKey', id),
    workspaceId: idFromUuid('workspace', row.workspaceId),
    status,
    expiresAt,
    workspaceExists,
    ownerIsMember,
    scopes,
    ipAllowlist,
    secrets,
  }
}

const findChangesStatement = statement<{
  revision: number
  mark: string | null
  continues: boolean
  id: string | null
}>(
  'find-access-changes',
  // Nothing but an act of ours gives a number a mark: without one no history continues.
  `select r.revision, current.mark, known.revision is not null as continues, k.id
   from access_revision r
   left join access_change current on current.revision = r.revision
   left join access_change known on known.revision = $1 and known.mark = $2
   left join lateral (
     select id from api_key
     where known.revision is not null and api_key.revision > $1
     order by api_key.revision limit 1001) k on true`,
)
const mostChanges = 1000

/**
 * The keys that changed after a revision. `complete` is false when there are too many to name, and when this database
 * has another history than the one that the asker has followed.
 */
export async function findAccessChanges(db: Queryable, { since, mark: known }: { since: number; mark: string | null }) {
  const rows = await run(db, findChangesStatement, [since, known])
  const { revision, mark, continues } = rows[0]!
  const apiKeys = rows.flatMap(({ id }) => (id === null ? [] : idFromUuid('apiKey', id)))
  const complete = continues && apiKeys.length <= mostChanges
  return { revision, mark, complete, apiKeys: complete ? apiKeys : [] }
}

const markUsedStatement = statement(
  'mark-keys-used',
  `update api_key k set last_used_at = least(used.at, now())
   from unnest($1::uuid[], $2::timestamptz[]) as used (id, at)
   where k.id = used.id and (k.last_used_at is null or k.last_used_at < used.at - interval '1 minute')`,
)

/** Notes when keys were used. A key's row is written at most once a minute, so a later use within it is not seen. */
export async function markKeysUsed(db: Queryable, uses: { apiKey: string; usedAt: Date }[]): Promise<void> {
  const known = uses.flatMap(({ apiKey, usedAt }) => {
    const id = uuidFromId('apiKey', apiKey)
    return id ? [{ id, usedAt: usedAt.toISOString() }] : []
  })
  // In one order everywhere: two gateways report at the same time.
  known.sort((a, b) => (a.id < b.id ? -1 : 1))
  await run(db, markUsedStatement, [
    plainArray(known.map(({ id }) => id)),
    plainArray(known.map(({ usedAt }) => usedAt)),
  ])
}

const findWorkspaceOfKeyStatement = statement<{ workspaceId: string }>(
  'find-workspace-of-key',
  `select workspace_id as "workspaceId" from api_key where id = $1`,
)

/** A key's workspace never changes, so what was learnt once holds. */
const workspaceOfKey = new Map<string, string>()
const workspaceOfKeyLimit = 100_000

/** The workspace that a key belongs to; null when there is no such key. */
export async function findWorkspaceOfKey(db: Queryable, apiKey: string): Promise<string | null> {
  const known = workspaceOfKey.get(apiKey)
  if (known) return known
  const uuid = uuidFromId('apiKey', apiKey)
  if (!uuid) return null
  const [row] = await run(db, findWorkspaceOfKeyStatement, [uuid])
  if (!row) return null
  const workspaceId = idFromUuid('workspace', row.workspaceId)
  if (workspaceOfKey.size >= workspaceOfKeyLimit) workspaceOfKey.clear()
  workspaceOfKey.set(apiKey, workspaceId)
  return workspaceId
}
