import { createTRPCClient, httpBatchStreamLink, splitLink } from '@trpc/client'
import { serialization } from '../contract/index.ts'
import type { AppRouter } from '../src/router.ts'
import { CoreLink } from './link.ts'

export { CoreUnreachable } from './link.ts'

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
        }),
        false: link.link,
      }),
    ],
  })
  return Object.assign(client, { close: () => link.close() })
}

export type CoreClient = ReturnType<typeof createCoreClient>

const streamedPaths = new Set(['ledger.verify'])
