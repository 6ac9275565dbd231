import { type httpBatchStreamLink, TRPCClientError } from '@trpc/client'
import { CoreUnreachable } from './link.ts'

type Fetch = NonNullable<Parameters<typeof httpBatchStreamLink>[0]['fetch']>

/**
 * Fetches from the first core that can be reached. For calls that change nothing: one that was begun and lost is
 * simply begun on the next, as long as nothing of its answer came.
 */
export function fetchFromAny(urls: string[]): Fetch {
  return async (input, init) => {
    const { pathname, search } = new URL(String(input))
    let failure: unknown
    for (const url of urls)
      try {
        const response = await fetch(new URL(pathname + search, url), init as RequestInit)
        const body = response.body && tellingLoss(response.body, init?.signal ?? undefined)
        return new Response(body, { status: response.status, headers: response.headers })
      } catch (error) {
        init?.signal?.throwIfAborted()
        failure = error
      }
    throw new CoreUnreachable(false, failure)
  }
}

/** A body that ends too early fails like any call that got no answer, unless its reader wanted it to end. */
function tellingLoss(body: ReadableStream<Uint8Array>, signal: AbortSignal | undefined): ReadableStream<Uint8Array> {
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
