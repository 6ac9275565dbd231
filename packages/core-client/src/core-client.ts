import { createTRPCClient, splitLink, type TRPCClient } from '@trpc/client'
import { createTRPCFlatProxy } from '@trpc/server'
import type { AppRouter } from '../../../services/core/src/router.ts'
import { BatchClient, type CoreLoad } from './batch-client.ts'
import { batchLink } from './batch-link.ts'
import { streamLink } from './stream-link.ts'

export type CoreClientOptions = {
  /** Where core listens: one URL, or the URLs of several cores that serve one database. */
  url: string | string[]
  /** A service token. Its role decides which procedures it may call. */
  token: string
}

/** `close` waits for pending requests. `load` returns what is queued and in flight now. */
export type CoreClient = TRPCClient<AppRouter> & { close(): Promise<void>; load(): CoreLoad }

/**
 * Creates a typed client of core: tRPC's client with our links. Concurrent calls are batched; Date and Decimal values
 * arrive as such. With several URLs, calls take turns at the healthy cores, and a call that one core certainly did not
 * start is sent to the next.
 *
 * Calls take tRPC's options. A call whose `signal` is aborted fails with CallAborted. If it was sent already, core may
 * still execute it.
 *
 * @throws TRPCClientError from each call. `error.data.appError` is core's own error. If core did not answer, the cause
 *   is a CoreUnreachable, CoreRejected or CallAborted.
 */
export function createCoreClient({ url, token }: CoreClientOptions): CoreClient {
  const batches = new BatchClient([url].flat(), token)
  const client = createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: ({ path }) => streamedPaths.has(path),
        true: streamLink({ cores: batches.cores, token }),
        false: batchLink({ client: batches }),
      }),
    ],
  })
  const own = { close: () => batches.close(), load: () => batches.load }
  return createTRPCFlatProxy<CoreClient>(key => (key in own ? own[key as keyof typeof own] : client[key as never]))
}

const streamedPaths = new Set(['ledger.verify', 'ledger.reopen', 'ledger.repair', 'ledger.checkpoint'])
