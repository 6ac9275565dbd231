import { isChainKey } from '../chain/chain-key.ts'
import { type LedgerRequest, type RequestResult, unavailable } from '../decide/requests.ts'
import type { LedgerStore } from './batch.ts'

/**
 * Rejects all requests with S002 until the chain key is known to be the ledger's. The check runs with the first batch,
 * not at startup, because core may start before its database.
 */
export function requireChainKey(
  store: LedgerStore,
  post: (requests: LedgerRequest[]) => Promise<RequestResult[]>,
): (requests: LedgerRequest[]) => Promise<RequestResult[]> {
  let isVerified = false
  return async requests => {
    try {
      isVerified ||= await isChainKey(store.pool, store.chainKey)
    } catch (error) {
      store.log.warn({ err: error }, 'the chain key could not be checked')
    }
    if (isVerified) return post(requests)
    return requests.map(unavailable)
  }
}
