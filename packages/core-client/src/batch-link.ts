import type { TRPCLink } from '@trpc/client'
import { observable } from '@trpc/server/observable'
import type { AppRouter } from '../../../services/core/src/routers/app-router.ts'
import type { BatchClient } from './batch-client.ts'
import { startCallSpan } from './call-span.ts'
import { PendingCall } from './pending-call.ts'

/**
 * A terminating link that batches calls to core, over a few connections (docs/decisions/0046). Unlike tRPC's httpBatchLink, calls made while
 * batches are in flight are collected for the next one, different kinds of calls are never in one batch, and there
 * can be several cores.
 *
 * An aborted call fails with CallAborted. If it is still queued, it is not sent. A batch is given up once all of its calls
 * are.
 */
export function batchLink({ client }: { client: BatchClient }): TRPCLink<AppRouter> {
  return () =>
    ({ op: { path, type, input, signal } }) =>
      observable(observer => {
        const call = new PendingCall({ path, type, input }, observer, startCallSpan(path))
        const queue = client.queueOf(call)
        const abort = () => queue.abort(call, signal?.reason)
        if (signal?.aborted) return abort()
        signal?.addEventListener('abort', abort, { once: true })
        call.onSettled = () => signal?.removeEventListener('abort', abort)
        queue.add(call)
        return () => {
          if (call.state !== 'settled') abort()
        }
      })
}
