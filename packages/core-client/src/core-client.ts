import { createTRPCClient, splitLink, type TRPCClient } from '@trpc/client'
import { createTRPCFlatProxy } from '@trpc/server'
import type { AppRouter } from '../../../services/core/src/router.ts'
import { BatchClient, type CoreLoad } from './batch-client.ts'
import { batchLink } from './batch-link.ts'
import { streamLink } from './stream-link.ts'

export type CoreClientOptions = {
  /** Where core listens: one URL, or several cores that serve one database. */
  url: string | string[]
  /** A service token; its role decides which procedures it reaches. */
  token: string
}

/** `close` waits for what is in flight. */
export type CoreClient = TRPCClient<AppRouter> & { close(): Promise<void>; load(): CoreLoad }

/**
 * A typed client of core: tRPC's own, over links of ours. Calls that are made at the same time travel together; Date
 * and Decimal arrive as such. With several URLs, a call that certainly was not begun on one core is sent to the next.
 *
 * Calls take tRPC's options. One whose `signal` is aborted is not sent or, when it was sent, abandoned: core may carry
 * it out all the same.
 *
 * @throws TRPCClientError from each call: `error.data.appError` holds core's own code; its cause is a CoreUnreachable, a
 *   CoreRejected or a CallAborted when no answer came
 */
export function createCoreClient({ url, token }: CoreClientOptions): CoreClient {
  const urls = [url].flat()
  const batches = new BatchClient(urls, token)
  const client = createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: ({ path }) => streamedPaths.has(path),
        true: streamLink(urls, token),
        false: batchLink(batches),
      }),
    ],
  })
  const own = { close: () => batches.close(), load: () => batches.load }
  return createTRPCFlatProxy<CoreClient>(key => (key in own ? own[key as keyof typeof own] : client[key as never]))
}

const streamedPaths = new Set(['ledger.verify', 'ledger.reopen', 'ledger.repair', 'ledger.checkpoint'])
