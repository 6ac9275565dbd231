import type { TRPCLink } from '@trpc/client'
import { observable } from '@trpc/server/observable'
import type { AppRouter } from '../../../services/core/src/router.ts'
import type { BatchClient } from './batch-client.ts'
import { Call } from './call.ts'

/**
 * A terminating link that sends calls to core's `/batch`. In contrast to tRPC's httpBatchLink, what is called while
 * requests are in flight gathers into the next one, calls of different kinds travel apart, and there may be several
 * cores.
 */
export function batchLink(client: BatchClient): TRPCLink<AppRouter> {
  return () =>
    ({ op: { path, type, input, signal } }) =>
      observable(observer => {
        const call = new Call({ path, type, input }, observer)
        const queue = client.queueOf(path)
        if (!signal) return queue.add(call)
        const abort = () => queue.abort(call, signal.reason)
        if (signal.aborted) return abort()
        signal.addEventListener('abort', abort, { once: true })
        queue.add(call)
        return () => signal.removeEventListener('abort', abort)
      })
}
