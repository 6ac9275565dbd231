import { AdminError, idFromUuid, type KekStatus, uuidFromId } from '@workspace-wallet/contract'
import { decryptSecret, encryptSecret, type KeyRing, kekOf } from '@workspace-wallet/runtime'
import { lockAccessRevision } from '../access/revision.ts'
import { recordAction } from '../audit/chain/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { type Queryable, run, statement } from '../database/statement.ts'
import { ApiKey } from './entities.ts'

/** All encrypted secrets, each with the ID of its key-encryption key: the second part of its text (runtime/secrets.ts). */
const encrypted = `
  select id, workspace_id, secret_version as version, secret, split_part(secret, '.', 2) as kek
  from api_key where secret <> ''
  union all
  select id, workspace_id, secret_version - 1, previous_secret, split_part(previous_secret, '.', 2)
  from api_key where previous_secret is not null`

const countByKekStatement = statement<{ kek: string; secrets: number }>(
  'count-secrets-by-kek',
  `select kek, count(*) as secrets from (${encrypted}) encrypted group by kek order by kek`,
)

/** The number of secrets under each key-encryption key. */
export async function findKekStatus(db: Queryable, keyRing: KeyRing): Promise<KekStatus> {
  const counts = await run(db, countByKekStatement, [])
  return {
    active: keyRing.activeId,
    keks: counts.map(({ kek, secrets }) => ({ kek, secrets, onRing: keyRing.keys.has(kek) })),
  }
}

type Sample = { kek: string; secrets: number; id: string; workspaceId: string; version: number; secret: string }

const sampleStatement = statement<Sample>(
  'sample-secrets',
  `select kek, secrets, id, workspace_id as "workspaceId", version, secret
   from (select *, count(*) over (partition by kek) as secrets,
           row_number() over (partition by kek order by id, version) as place from (${encrypted}) encrypted) numbered
   where place <= 3`,
)

/**
 * Checks that the key ring decrypts the stored secrets. Core does not need them, but gateways have the same ring and would
 * fail.
 *
 * @returns a sentence for the operator if a key is missing or differs; otherwise null
 */
export async function faultOfKeyRing(db: Queryable, keyRing: KeyRing): Promise<string | null> {
  for (const [kek, samples] of Map.groupBy(await run(db, sampleStatement, []), sample => sample.kek)) {
    const secrets = `${samples[0]!.secrets} secret(s) of API keys`
    if (!keyRing.keys.has(kek))
      return `KEY_ENCRYPTION_KEYS lacks ${kek}, which encrypts ${secrets}: append that key to the list of core and gateways.`
    // One row may be damaged. If no sample decrypts, the key is wrong.
    if (!samples.some(sample => isDecryptable(keyRing, sample)))
      return `KEY_ENCRYPTION_KEYS has another ${kek} than the one that encrypts ${secrets}: give core and gateways the original key.`
  }
  return null
}

function isDecryptable(keyRing: KeyRing, { id, workspaceId, version, secret }: Sample): boolean {
  const owner = { id: idFromUuid('apiKey', id), workspaceId: idFromUuid('workspace', workspaceId), version }
  return reencrypt(keyRing, owner, secret) !== null
}

export type RewrapStep = { to: string; after?: string | undefined; limit: number }

/**
 * Re-encrypts secrets under the active key-encryption key. Secrets that can no longer be used, those of deleted keys and
 * those whose grace has ended, are removed.
 *
 * This does not change what a key may do, so it takes no access revision. It locks it, as every change of a key does, so
 * that no change is overwritten.
 *
 * @param step `after`: the last API key of the previous step; `limit`: the number of keys
 * @returns the number of secrets, the keys that were left as they are because their row or a secret is damaged, and the
 *   `after` of the next step, null at the end
 */
export async function rewrapSecrets(em: Em, keyRing: KeyRing, actor: string, { to, after, limit }: RewrapStep) {
  if (to !== keyRing.activeId)
    throw new AdminError(
      'NOT_ALLOWED',
      `The first key-encryption key of this core is ${keyRing.activeId}, that of another core is ${to}: give all cores the same KEY_ENCRYPTION_KEYS.`,
    )
  await lockAccessRevision(em)
  const now = await databaseTime(em)
  const rows = await em.execute<{ id: string }[]>(
    `select id from api_key
     where id > ? and (secret <> '' and split_part(secret, '.', 2) <> ? or split_part(previous_secret, '.', 2) <> ?)
     order by id limit ?`,
    [uuidFromId('apiKey', after ?? '') ?? nilUuid, to, to, limit],
  )
  const ids = rows.map(({ id }) => idFromUuid('apiKey', id))
  const keys = await em.find(ApiKey, { id: { $in: ids } }, { orderBy: { id: 'asc' } })
  const unreadable: string[] = []
  let rewrapped = 0
  for (const key of keys) {
    const outdated = [key.secret, key.previousSecret ?? ''].filter(secret => secret && kekOf(secret) !== to).length
    if (isGenuine(key) && rewrapKey(keyRing, key, now)) rewrapped += outdated
    else unreadable.push(key.id)
  }
  if (rewrapped > 0)
    recordAction(em, {
      actor,
      action: 'kek.rotate',
      workspaceId: null,
      target: to,
      after: { secrets: rewrapped, first: ids[0], last: ids.at(-1) },
    })
  await em.flush()
  return { rewrapped, unreadable, next: rows.length === limit ? ids.at(-1)! : null }
}

const nilUuid = '00000000-0000-0000-0000-000000000000'

/** Returns false, and leaves the key as it is, if a secret does not decrypt. */
function rewrapKey(keyRing: KeyRing, key: ApiKey, now: Date): boolean {
  const { id, workspaceId, secretVersion: version } = key
  if (key.deletedAt) {
    key.secret = ''
    key.previousSecret = key.previousSecretUntil = null
    return true
  }
  const isGraceOver = !key.previousSecretUntil || key.previousSecretUntil <= now
  const current = reencrypt(keyRing, { id, workspaceId, version }, key.secret)
  const previous = isGraceOver ? '' : reencrypt(keyRing, { id, workspaceId, version: version - 1 }, key.previousSecret!)
  if (current === null || previous === null) return false
  key.secret = current
  key.previousSecret = previous || null
  if (isGraceOver) key.previousSecretUntil = null
  return true
}

/** Null if the secret does not decrypt. */
function reencrypt(keyRing: KeyRing, owner: Parameters<typeof decryptSecret>[1], secret: string): string | null {
  try {
    return encryptSecret(keyRing, owner, decryptSecret(keyRing, owner, secret))
  } catch {
    return null
  }
}
