import type { IncomingMessage } from 'node:http'
import { DomainError, uuidFromId } from '@workspace-wallet/contract'
import type { Key, KeyCache } from './keys/key-cache.ts'
import { header } from './request-target.ts'

/** Step 1 of section 5.3: the key that X-Api-Key names. A doubled header is no key's id. */
function findKey(keys: KeyCache, request: IncomingMessage, beforeLookUp?: () => void): Key | Promise<Key> {
  const apiKey = header(request, 'x-api-key')
  if (apiKey === '') throw new DomainError('GA2001')
  if (beforeLookUp && !keys.isCached(apiKey)) beforeLookUp()
  const found = uuidFromId('apiKey', apiKey) ? keys.find(apiKey) : null
  return found instanceof Promise ? found.then(key => known(key, request)) : known(found, request)
}

function known(key: Key | null, request: IncomingMessage): Key {
  if (!key) throw new DomainError('GA2011')
  request.apiKey = key.apiKey
  return key
}

/**
 * Steps 1 to 3: the key, if it may be used now.
 *
 * @param beforeLookUp may refuse before core is asked
 */
export function findUsableKey(
  keys: KeyCache,
  request: IncomingMessage,
  now: () => number,
  beforeLookUp?: () => void,
): Key | Promise<Key> {
  const found = findKey(keys, request, beforeLookUp)
  return found instanceof Promise ? found.then(key => usable(key, now())) : usable(found, now())
}

function usable(key: Key, nowMs: number): Key {
  checkKeyStatus(key, nowMs)
  checkWorkspace(key)
  return key
}

/** Step 2: the key is neither disabled nor expired. */
function checkKeyStatus(key: Key, nowMs: number): void {
  if (key.status !== 'ACTIVE') throw new DomainError('GA2021', { reason: 'DISABLED' })
  if (key.expiresAtMs <= nowMs) throw new DomainError('GA2021', { reason: 'EXPIRED' })
}

/** Step 3: its workspace exists, and its owner is still a member there. */
function checkWorkspace(key: Key): void {
  if (!key.workspaceExists) throw new DomainError('GA2032')
  if (!key.ownerIsMember) throw new DomainError('GA2034')
}
