import { AdminError } from '@workspace-wallet/contract'
import { decryptSecret, encryptSecret, type KeyRing, kekOf, type SecretOwner } from '@workspace-wallet/runtime'
import { lockAccess, lockWebhooks } from '../access/revision.ts'
import { recordAction } from '../audit/record.ts'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { findHolders, kindAfter, type SecretHolder } from './secret-holders.ts'

export type RewrapStep = { to: string; after?: string | undefined; limit: number }

/**
 * Re-encrypts secrets under the active key-encryption key: those of API keys, then those of webhooks. Secrets that can no
 * longer be used, those of deleted objects and those whose grace has ended, are removed.
 *
 * This does not change what a key may do, so it takes no access revision. It takes the lock of such changes, so that none of
 * them is overwritten.
 *
 * @param step `after`: the last object of the previous step; `limit`: the number of objects
 * @returns the number of secrets, the objects that were left as they are because a secret is damaged, and the `after` of the
 *   next step, null at the end
 */
export async function rewrapSecrets(em: Em, keyRing: KeyRing, actor: string, { to, after, limit }: RewrapStep) {
  if (to !== keyRing.activeId)
    throw new AdminError(
      'NOT_ALLOWED',
      `The first key-encryption key of this core is ${keyRing.activeId}, that of another core is ${to}: give all cores the same KEY_ENCRYPTION_KEYS.`,
    )
  const kind = kindAfter(after)
  await (kind === 'apiKey' ? lockAccess(em) : lockWebhooks(em))
  const { holders, next } = await findHolders(em, { after, except: [to], limit, isLocked: kind === 'webhook' })
  const now = await databaseTime(em)
  const unreadable: string[] = []
  let rewrapped = 0
  // A modified row is not signed again, and nothing uses its secrets.
  for (const holder of holders.filter(isGenuine)) {
    const outdated = [holder.secret, holder.previousSecret ?? ''].filter(
      secret => secret && kekOf(secret) !== to,
    ).length
    if (rewrap(keyRing, holder, now)) rewrapped += outdated
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
  return { rewrapped, unreadable, next }
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
