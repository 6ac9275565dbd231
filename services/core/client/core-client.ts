import { createTRPCUntypedClient, httpBatchStreamLink, type TRPCClient } from '@trpc/client'
import { createTRPCRecursiveProxy } from '@trpc/server'
import { serialization } from '../contract/index.ts'
import type { AppRouter } from '../src/router.ts'
import { CoreLink, type CoreLoad } from './link.ts'
import { fetchFromAny } from './stream.ts'

export type CoreClientOptions = {
  /** Where core listens: one URL, or several cores that serve one database. */
  url: string | string[]
  /** A service token; its role decides which procedures it reaches. */
  token: string
}

/**
 * A typed client of core. Calls that are made at the same time travel together; Date and Decimal arrive as such.
 * With several URLs, a call that surely was not begun on one core is sent to the next.
 *
 * @throws TRPCClientError from each call: `error.data.wire` holds core's own code; its cause is a CoreUnreachable
 *   when no answer came
 */
export function createCoreClient({ url, token }: CoreClientOptions): CoreClient {
  const urls = [url].flat()
  const link = new CoreLink(urls, token)
  // Answers that come in pieces, over minutes.
  const streams = createTRPCUntypedClient<AppRouter>({
    links: [
      httpBatchStreamLink({
        url: new URL('/trpc', urls[0]),
        transformer: serialization,
        headers: { authorization: `Bearer ${token}` },
        fetch: fetchFromAny(urls),
        // A call of its own each: to leave one ends it, whatever else is under way.
        maxItems: 1,
      }),
    ],
  })
  // tRPC's own client does the same for one call at a time, with an observable and an AbortController for each.
  return createTRPCRecursiveProxy(({ path: names, args: [input, options] }) => {
    const path = names.slice(0, -1).join('.')
    const isStreamed = streamedPaths.has(path)
    switch (names.at(-1)) {
      case 'query':
        return isStreamed ? streams.query(path, input, options as object) : link.call(path, 'query', input)
      case 'mutate':
        return isStreamed ? streams.mutation(path, input, options as object) : link.call(path, 'mutation', input)
      case 'close':
        return link.close()
      case 'load':
        return link.load
      default:
        throw new TypeError(`${names.join('.')}: a call ends in query or mutate`)
    }
  }) as CoreClient
}

export type CoreClient = TRPCClient<AppRouter> & { close(): Promise<void>; load(): CoreLoad }

const streamedPaths = new Set(['ledger.verify', 'ledger.reopen', 'ledger.seal'])
