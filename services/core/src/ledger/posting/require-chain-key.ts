import { isChainKey } from '../chain/chain-key.ts'
import type { LedgerStore } from './batch.ts'
import { type Posting, type PostingResult, unavailable } from './posting.ts'

/**
 * Rejects all postings with S002 until the chain key is known to be the ledger's. The check runs with the first batch,
 * not at startup, because core may start before its database.
 */
export function requireChainKey(
  store: LedgerStore,
  post: (postings: Posting[]) => Promise<PostingResult[]>,
): (postings: Posting[]) => Promise<PostingResult[]> {
  let isVerified = false
  return async postings => {
    try {
      isVerified ||= await isChainKey(store.pool, store.chainKey)
    } catch (error) {
      store.log.warn({ err: error }, 'the chain key could not be checked')
    }
    if (isVerified) return post(postings)
    return postings.map(unavailable)
  }
}
