import { LockMode } from '@mikro-orm/core'
import { AdminError, idFromUuid, uuidFromId } from '@workspace-wallet/contract'
import { decryptSecret, encryptSecret, type KeyRing, kekOf, type SecretOwner } from '@workspace-wallet/runtime'
import { lockAccessRevision } from '../access/revision.ts'
import { ApiKey } from '../api-keys/entities.ts'
import { recordAction } from '../audit/chain/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { Webhook } from '../webhooks/entities.ts'
import { type SecretKind, tables } from './status.ts'

type SecretHolder = ApiKey | Webhook

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
