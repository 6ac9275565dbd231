import { LockMode } from '@mikro-orm/core'
import { AdminError, type IdKind, idFromUuid, type KekStatus, uuidFromId } from '@workspace-wallet/contract'
import { decryptSecret, encryptSecret, type KeyRing, kekOf, type SecretOwner } from '@workspace-wallet/runtime'
import { lockAccessRevision } from '../access/revision.ts'
import { ApiKey } from '../api-keys/entities.ts'
import { recordAction } from '../audit/chain/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { type Queryable, run, statement } from '../database/statement.ts'
import { Webhook } from '../webhooks/entities.ts'

/** The objects that have secrets, and their tables. */
const tables = { apiKey: 'api_key', webhook: 'webhook' } as const
type SecretKind = keyof typeof tables & IdKind
type SecretHolder = ApiKey | Webhook

/** All encrypted secrets, each with the ID of its key-encryption key: the second part of its text (runtime/secrets.ts). */
const encrypted = Object.entries(tables)
  .flatMap(([kind, table]) => [
    `select '${kind}' as kind, id, workspace_id, secret_version as version, secret, split_part(secret, '.', 2) as kek
     from ${table} where secret <> ''`,
    `select '${kind}', id, workspace_id, secret_version - 1, previous_secret, split_part(previous_secret, '.', 2)
     from ${table} where previous_secret is not null`,
  ])
  .join(' union all ')

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

type Sample = {
  kek: string
  secrets: number
  kind: SecretKind
  id: string
  workspaceId: string
  version: number
  secret: string
}

const sampleStatement = statement<Sample>(
  'sample-secrets',
  `select kek, secrets, kind, id, workspace_id as "workspaceId", version, secret
   from (select *, count(*) over (partition by kek) as secrets,
           row_number() over (partition by kek order by id, version) as place from (${encrypted}) encrypted) numbered
   where place <= 3`,
)

/**
 * Checks that the key ring decrypts the stored secrets. Gateways have the same ring, and core signs deliveries of webhooks.
 *
 * @returns a sentence for the operator if a key is missing or differs; otherwise null
 */
export async function faultOfKeyRing(db: Queryable, keyRing: KeyRing): Promise<string | null> {
  for (const [kek, samples] of Map.groupBy(await run(db, sampleStatement, []), sample => sample.kek)) {
    const secrets = `${samples[0]!.secrets} secret(s) of API keys and webhooks`
    if (!keyRing.keys.has(kek))
      return `KEY_ENCRYPTION_KEYS lacks ${kek}, which encrypts ${secrets}: append that key to the list of core and gateways.`
    // One row may be damaged. If no sample decrypts, the key is wrong.
    if (!samples.some(sample => isDecryptable(keyRing, sample)))
      return `KEY_ENCRYPTION_KEYS has another ${kek} than the one that encrypts ${secrets}: give core and gateways the original key.`
  }
  return null
}

function isDecryptable(keyRing: KeyRing, { kind, id, workspaceId, version, secret }: Sample): boolean {
  const owner = { id: idFromUuid(kind, id), workspaceId: idFromUuid('workspace', workspaceId), version }
  return reencrypt(keyRing, owner, secret) !== null
}

export type RewrapStep = { to: string; after?: string | undefined; limit: number }

/**
 * Re-encrypts secrets under the active key-encryption key: those of API keys, then those of webhooks. Secrets that can no
 * longer be used, those of deleted objects and those whose grace has ended, are removed.
 *
 * This does not change what a key may do, so it takes no access revision. It locks it, as every change of a key does, so
 * that no change is overwritten.
 *
 * @param step `after`: the last object of the previous step; `limit`: the number of objects
 * @returns the number of secrets, the objects that were left as they are because their row or a secret is damaged, and the
 *   `after` of the next step, null at the end
 */
export async function rewrapSecrets(em: Em, keyRing: KeyRing, actor: string, { to, after, limit }: RewrapStep) {
  if (to !== keyRing.activeId)
    throw new AdminError(
      'NOT_ALLOWED',
      `The first key-encryption key of this core is ${keyRing.activeId}, that of another core is ${to}: give all cores the same KEY_ENCRYPTION_KEYS.`,
    )
  const afterWebhook = after === undefined ? null : uuidFromId('webhook', after)
  const kind = afterWebhook ? 'webhook' : 'apiKey'
  if (kind === 'apiKey') await lockAccessRevision(em)
  const from = afterWebhook ?? uuidFromId('apiKey', after ?? '') ?? nilUuid
  const holders = await findOutdated(em, kind, { to, from, limit })
  const now = await databaseTime(em)
  const unreadable: string[] = []
  let rewrapped = 0
  for (const holder of holders) {
    const outdated = [holder.secret, holder.previousSecret ?? ''].filter(
      secret => secret && kekOf(secret) !== to,
    ).length
    if (isGenuine(holder) && rewrap(keyRing, holder, now)) rewrapped += outdated
    else unreadable.push(holder.id)
  }
  if (rewrapped > 0)
    recordAction(em, {
      actor,
      action: 'kek.rotate',
      workspaceId: null,
      target: to,
      after: { secrets: rewrapped, first: holders[0]!.id, last: holders.at(-1)!.id },
    })
  if (holders.length === limit) return { rewrapped, unreadable, next: holders.at(-1)!.id }
  return { rewrapped, unreadable, next: kind === 'apiKey' ? idFromUuid('webhook', nilUuid) : null }
}

const nilUuid = '00000000-0000-0000-0000-000000000000'

/** Objects with a secret under another key-encryption key, in order of their IDs. The rows of webhooks are locked. */
async function findOutdated(
  em: Em,
  kind: SecretKind,
  { to, from, limit }: { to: string; from: string; limit: number },
): Promise<SecretHolder[]> {
  const rows = await em.execute<{ id: string }[]>(
    `select id from ${tables[kind]}
     where id > ? and (secret <> '' and split_part(secret, '.', 2) <> ? or split_part(previous_secret, '.', 2) <> ?)
     order by id limit ?`,
    [from, to, to, limit],
  )
  const where = { id: { $in: rows.map(({ id }) => idFromUuid(kind, id)) } }
  return kind === 'apiKey'
    ? em.find(ApiKey, where, { orderBy: { id: 'asc' } })
    : em.find(Webhook, where, { orderBy: { id: 'asc' }, lockMode: LockMode.PESSIMISTIC_WRITE })
}

/** Returns false, and leaves the object as it is, if a secret does not decrypt. */
function rewrap(keyRing: KeyRing, holder: SecretHolder, now: Date): boolean {
  const { id, workspaceId, secretVersion: version } = holder
  if (holder.deletedAt) {
    holder.secret = ''
    holder.previousSecret = holder.previousSecretUntil = null
    return true
  }
  const isGraceOver = !holder.previousSecretUntil || holder.previousSecretUntil <= now
  const current = reencrypt(keyRing, { id, workspaceId, version }, holder.secret)
  const previous = isGraceOver
    ? ''
    : reencrypt(keyRing, { id, workspaceId, version: version - 1 }, holder.previousSecret!)
  if (current === null || previous === null) return false
  holder.secret = current
  holder.previousSecret = previous || null
  if (isGraceOver) holder.previousSecretUntil = null
  return true
}

/** Null if the secret does not decrypt. */
function reencrypt(keyRing: KeyRing, owner: SecretOwner, secret: string): string | null {
  try {
    return encryptSecret(keyRing, owner, decryptSecret(keyRing, owner, secret))
  } catch {
    return null
  }
}
