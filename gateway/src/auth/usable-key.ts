import type { IncomingMessage } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'
import { header } from './headers.ts'
import type { Key, KeyCache } from './keys/key-cache.ts'

/**
 * Steps 1 to 3 of section 5.3: the key that X-Api-Key names, if it can be used now.
 *
 * @throws DomainError GA2001, GA2011, GA2021, GA2032, GA2034; S002 if core cannot be asked
 */
export async function findUsableKey(keys: KeyCache, request: IncomingMessage, now: () => number): Promise<Key> {
  const apiKey = header(request, 'x-api-key')
  if (apiKey === '') throw new DomainError('GA2001')
  const key = await keys.find(apiKey)
  if (!key) throw new DomainError('GA2011')
  request.apiKey = key.apiKey
  checkKeyStatus(key, now())
  checkWorkspace(key)
  return key
}

/** Step 2: the key is neither disabled nor expired. */
function checkKeyStatus(key: Key, nowMs: number): void {
  if (key.status !== 'ACTIVE') throw new DomainError('GA2021', { reason: 'DISABLED' })
  if (key.expiresAtMs <= nowMs) throw new DomainError('GA2021', { reason: 'EXPIRED' })
}

/** Step 3: the key's workspace exists, and the key's owner is a member of it. */
function checkWorkspace(key: Key): void {
  if (!key.workspaceExists) throw new DomainError('GA2032')
  if (!key.ownerIsMember) throw new DomainError('GA2034')
}
