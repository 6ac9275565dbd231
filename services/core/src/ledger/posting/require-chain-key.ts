import { isChainKey } from '../chain/chain-key.ts'
import type { LedgerStore } from './batch.ts'
import type { Posting, PostingResult } from './posting.ts'
import { unavailable } from './transaction.ts'

/** Posts only once the key is known to be the right one: checked with the first batch, for core may start before its database. */
export function requireChainKey(
  store: LedgerStore,
  post: (postings: Posting[]) => Promise<PostingResult[]>,
): (postings: Posting[]) => Promise<PostingResult[]> {
  let isRight = false
  return async postings => {
    try {
      isRight ||= await isChainKey(store.pool, store.chainKey)
    } catch (error) {
      store.log.warn({ err: error }, 'the chain key could not be checked')
    }
    if (isRight) return post(postings)
    return postings.map(unavailable)
  }
}
