import { atBatchIndex, DomainError, type Scope } from '@workspace-wallet/contract'
import { isListed, parseAddress } from '@workspace-wallet/runtime'
import type { Key } from './keys/key-cache.ts'

/** Step 7 of section 5.3: the client's address is in the IP list of the key, if it has one. */
export function checkAddress(key: Key, address: string): void {
  if (key.ipAllowlist.length === 0) return
  const parsed = parseAddress(address)
  if (!parsed || !isListed(parsed, key.ipAllowlist)) throw new DomainError('GA2022', { address })
}

/**
 * Step 8 of section 5.3: the key has the scope that the endpoint declares.
 *
 * @param index the place of the item of a batch that needs the scope
 */
export function checkScope(key: Key, scope: Scope, index?: number): void {
  if (key.scopes.has(scope)) return
  const error = new DomainError('GA2024', { scope })
  throw index === undefined ? error : atBatchIndex(error, index)
}
