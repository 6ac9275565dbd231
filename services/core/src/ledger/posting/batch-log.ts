import type { Log } from '@workspace-wallet/runtime'
import { type LedgerRequest, type RequestResult, requestIdOf } from '../decide/requests.ts'
import { batchName } from '../store/transaction.ts'

type Post = (requests: LedgerRequest[]) => Promise<RequestResult[]>

/** Logs each batch with its name in PostgreSQL, the IDs of its requests, the number of rejected requests and its duration. */
export function withBatchLog(log: Log, post: Post): Post {
  return async requests => {
    const startedAt = performance.now()
    const results = await post(requests)
    if (log.isLevelEnabled('info')) {
      const milliseconds = Math.round((performance.now() - startedAt) * 100) / 100
      const rejected = results.filter(({ kind }) => kind === 'refused').length
      const requestIds = requests.map(requestIdOf)
      log.info({ batch: batchName(requests), requestIds, rejected, milliseconds }, 'a batch was posted')
    }
    return results
  }
}
