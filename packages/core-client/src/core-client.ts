import { createTRPCClient, splitLink, type TRPCClient } from '@trpc/client'
import { createTRPCFlatProxy } from '@trpc/server'
import type { AppRouter, ProcedureOutput, ProcedurePath } from '../../../services/core/src/routers/app-router.ts'
import { type AnswerLimits, defaultAnswerLimits } from './answer-limits.ts'
import { BatchClient, type CoreLoad } from './batch-client.ts'
import { batchLink } from './batch-link.ts'
import { streamLink } from './stream-link.ts'

export type CoreClientOptions = {
  /**
   * Where core listens, such as `http://core:8081`: one URL, or the URLs of several cores that serve one database. The
   * internal listener of a gateway works too.
   */
  url: string | string[]
  /** A service token. Its role decides which procedures it may call. */
  token: string
  /** Lower limits for the answers to a batch than those that suffice for all procedures. A larger answer fails with CoreUnreachable. */
  answers?: AnswerLimits
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
 * A failed call throws a TRPCClientError: `domainErrorOf`, `inputFaultsOf` and `noAnswerErrorOf` return the reason, and
 * `error.data` is core's description.
 *
 * @throws TypeError if a URL or the token is malformed
 */
export function createCoreClient({ url, token, answers = defaultAnswerLimits }: CoreClientOptions): CoreClient {
  checkToken(token)
  const batches = new BatchClient(originsOf([url].flat()), { token, answers })
  const client = createTRPCClient<AppRouter>({
    links: [
      splitLink({
        condition: ({ path }) => Object.hasOwn(streams, path),
        true: streamLink({ cores: batches.cores, token, answers }),
        false: batchLink({ client: batches }),
      }),
    ],
  })
  const own = { close: () => batches.close(), load: () => batches.load }
  return createTRPCFlatProxy<CoreClient>(key => (key in own ? own[key as keyof typeof own] : client[key as never]))
}

/** The procedures that stream their responses. */
type StreamedPath = {
  [Path in ProcedurePath]: ProcedureOutput<Path> extends AsyncIterable<unknown> ? Path : never
}[ProcedurePath]

// The type of the router knows them, and nothing of it exists when this program runs.
const streams: Record<StreamedPath, true> = {
  'ledger.checkpoint': true,
  'ledger.reopen': true,
  'ledger.repair': true,
  'ledger.verify': true,
}

/** @throws TypeError */
function originsOf(urls: string[]): string[] {
  if (urls.length === 0) throw new TypeError('url is an empty list: give the URL of at least one core')
  return urls.map(text => {
    const url = URL.parse(text)
    if (!url || !['http:', 'https:'].includes(url.protocol) || url.pathname + url.search !== '/')
      throw new TypeError(`url must be a URL without a path, such as http://core:8081, not "${text}"`)
    return url.origin
  })
}

/** @throws TypeError, without the token in its message */
function checkToken(token: string): void {
  if (!/^[\x21-\x7e]+$/.test(token))
    throw new TypeError('token must be one of the SERVICE_TOKENS of core: visible ASCII characters, without spaces')
}
