import { createTRPCClient, httpBatchStreamLink, splitLink } from '@trpc/client'
import { serialization } from '../contract/index.ts'
import type { AppRouter } from '../src/router.ts'
import { CoreLink } from './link.ts'
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
export function createCoreClient({ url, token }: CoreClientOptions) {
  const urls = [url].flat()
  const link = new CoreLink(urls, token)
  const client = createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: ({ path }) => streamedPaths.has(path),
        // Answers that come in pieces, over minutes.
        true: httpBatchStreamLink({
          url: new URL('/trpc', urls[0]),
          transformer: serialization,
          headers: { authorization: `Bearer ${token}` },
          fetch: fetchFromAny(urls),
          // A call of its own each: to leave one ends it, whatever else is under way.
          maxItems: 1,
        }),
        false: link.link,
      }),
    ],
  })
  // The client answers to any name, its own properties included: so close() is put in front of it.
  return new Proxy(client as typeof client & { close(): Promise<void> }, {
    get: (target, name, receiver) => (name === 'close' ? () => link.close() : Reflect.get(target, name, receiver)),
  })
}

export type CoreClient = ReturnType<typeof createCoreClient>

const streamedPaths = new Set(['ledger.verify', 'ledger.seal'])
