import { httpBatchStreamLink, TRPCClientError, type TRPCLink } from '@trpc/client'
import { serialization } from '@workspace-wallet/contract'
import { firstText } from '@workspace-wallet/runtime/first-text'
import type { AppRouter } from '../../../services/core/src/routers/app-router.ts'
import type { AnswerLimits } from './answer-limits.ts'
import type { CoreConnection } from './core-connection.ts'
import { CoreRotation } from './core-rotation.ts'
import { CoreRejected, NoAnswerError } from './errors.ts'
import { foreignAnswer, requestFailure, tooLongAnswer, unresponsive, wasNeverSent } from './request-failures.ts'

const newline = 0x0a

type Fetch = NonNullable<Parameters<typeof httpBatchStreamLink>[0]['fetch']>

/** A terminating link for procedures that stream their responses, which can take minutes: tRPC's own, with several cores. */
export function streamLink({
  cores,
  token,
  answers,
}: {
  cores: readonly CoreConnection[]
  token: string
  answers: AnswerLimits
}): TRPCLink<AppRouter> {
  return httpBatchStreamLink({
    // `fetchFromAny` replaces the origin.
    url: new URL('/trpc', cores[0]!.url),
    transformer: serialization,
    headers: { authorization: `Bearer ${token}` },
    fetch: fetchFromAny(new CoreRotation(cores), answers.bytes),
    // One call per request, so that aborting a call ends its request.
    maxItems: 1,
  })
}

/**
 * Fetches from one core after another until one answers. Queries can always be sent again; mutations only if the failed
 * core certainly did not start them.
 */
function fetchFromAny(rotation: CoreRotation, maxLineBytes: number): Fetch {
  return async (input, init) => {
    const { pathname, search } = new URL(String(input))
    const isMutation = init?.method === 'POST'
    let failure: NoAnswerError = unresponsive(rotation.urls)
    for (const core of rotation.next())
      try {
        return await fetchFrom(core, pathname + search, init as RequestInit, maxLineBytes)
      } catch (error) {
        if (!(error instanceof NoAnswerError)) throw error
        failure = error
        if (error.sent && isMutation) break
      }
    throw failure
  }
}

/** @throws CoreUnreachable, CoreRejected; the reason of the signal if it was aborted */
async function fetchFrom(
  core: CoreConnection,
  path: string,
  init: RequestInit,
  maxLineBytes: number,
): Promise<Response> {
  const sentAtMs = performance.now()
  const response = await fetch(new URL(path, core.url), { ...init, redirect: 'manual' }).catch(error => {
    init.signal?.throwIfAborted()
    const failure = requestFailure(core.url, error.cause, { sent: !wasNeverSent(error.cause), sentAtMs })
    if (!failure.sent) core.startCoolDown()
    throw failure
  })
  if (!response.ok) {
    const text = response.body ? await firstText(response.body) : ''
    throw new CoreRejected(core.url, response.status, text, sentAtMs)
  }
  const type = response.headers.get('content-type')
  if (!type?.startsWith('application/json')) throw foreignAnswer(core.url, { sent: true, sentAtMs }, type)
  const body = response.body && checkLines(response.body, { url: core.url, maxLineBytes, signal: init.signal })
  return new Response(body, { status: response.status, headers: response.headers })
}

/**
 * Replaces the error of a body that ends too early with a CoreUnreachable, unless the reader aborted it, and fails if one of its lines,
 * which tRPC keeps until they end, is longer than those of core.
 */
function checkLines(
  body: ReadableStream<Uint8Array>,
  { url, maxLineBytes, signal }: { url: string; maxLineBytes: number; signal: AbortSignal | null | undefined },
): ReadableStream<Uint8Array> {
  const reader = body.getReader()
  const attempt = { sent: true, sentAtMs: performance.now() }
  let lineBytes = 0
  return new ReadableStream({
    async pull(controller) {
      try {
        const { done, value } = await reader.read()
        if (done) return controller.close()
        const lineEnd = value.lastIndexOf(newline)
        lineBytes = lineEnd < 0 ? lineBytes + value.length : value.length - lineEnd - 1
        if (lineBytes <= maxLineBytes) return controller.enqueue(value)
        controller.error(TRPCClientError.from(tooLongAnswer(url, attempt)))
        await reader.cancel()
      } catch (error) {
        controller.error(signal?.aborted ? error : TRPCClientError.from(requestFailure(url, error, attempt)))
      }
    },
    cancel: reason => reader.cancel(reason),
  })
}
