import { httpBatchStreamLink, TRPCClientError, type TRPCLink } from '@trpc/client'
import { serialization } from '@workspace-wallet/contract'
import type { AppRouter } from '../../../services/core/src/router.ts'
import { CoreRejected, CoreUnreachable, NoAnswerError, wasNeverSent } from './errors.ts'

type Fetch = NonNullable<Parameters<typeof httpBatchStreamLink>[0]['fetch']>

/** A terminating link for procedures that stream their answers, over minutes. */
export function streamLink(urls: string[], token: string): TRPCLink<AppRouter> {
  return httpBatchStreamLink({
    url: new URL('/trpc', urls[0]),
    transformer: serialization,
    headers: { authorization: `Bearer ${token}` },
    fetch: fetchFromAny(urls),
    // A call of its own each: to abort one ends it, whatever else is in flight.
    maxItems: 1,
  })
}

/**
 * Fetches from the first core that answers. What got no answer goes to the next core: queries always, mutations for as
 * long as they certainly were not begun.
 */
function fetchFromAny(urls: string[]): Fetch {
  return async (input, init) => {
    const { pathname, search } = new URL(String(input))
    const isMutation = init?.method === 'POST'
    let failure: NoAnswerError = new CoreUnreachable(false)
    for (const url of urls)
      try {
        return await fetchFrom(new URL(pathname + search, url), init as RequestInit)
      } catch (error) {
        if (!(error instanceof NoAnswerError)) throw error
        failure = error
        if (error.sent && isMutation) break
      }
    throw failure
  }
}

/** @throws CoreUnreachable, CoreRejected; the reason of the signal when it was aborted */
async function fetchFrom(url: URL, init: RequestInit): Promise<Response> {
  const sentAtMs = performance.now()
  const response = await fetch(url, init).catch(error => {
    init.signal?.throwIfAborted()
    throw new CoreUnreachable(!wasNeverSent(error.cause), error, sentAtMs)
  })
  if (!response.ok) throw new CoreRejected(url.origin, response.status, await response.text(), sentAtMs)
  const body = response.body && reportLoss(response.body, init.signal ?? undefined)
  return new Response(body, { status: response.status, headers: response.headers })
}

/** A body that ends too early fails like any call that got no answer, unless its reader wanted it to end. */
function reportLoss(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) controller.close()
        else controller.enqueue(value)
      } catch (error) {
        controller.error(signal?.aborted ? error : TRPCClientError.from(new CoreUnreachable(true, error)))
      }
    },
    cancel: reason => reader.cancel(reason),
  })
}
