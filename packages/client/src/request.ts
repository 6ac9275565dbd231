import { type Answer, attempt, type Sent } from './attempt.ts'
import { AbortedError, ApiError, ConnectionError, type Outcome, RequestError, UnexpectedAnswerError } from './errors.ts'
import { pause } from './pause.ts'
import { type Query, queryString } from './queries.ts'
import type { Settings } from './settings.ts'

/** What every call takes. */
export type CallOptions = {
  /** Aborting it ends the call with an AbortedError. The service may still execute a command that was sent. */
  signal?: AbortSignal | undefined
  /** How long one attempt may take, in milliseconds. Default: that of the client. */
  timeoutMs?: number | undefined
}

export type RequestOptions = CallOptions & {
  query?: Query | undefined
  /** Sent as JSON; a string is sent as it is. */
  body?: object | string | undefined
  /**
   * Whether the request may be sent again after an attempt that may have taken effect. Default: for GET, and for a body with
   * a bizId, or with one in each transfer of a batch.
   */
  isRepeatable?: boolean | undefined
}

/**
 * Signs and sends one request, retries it, and returns the answer of a success.
 *
 * @param path of the URL, percent-encoded, without a query string
 * @throws RequestError see its subclasses
 * @throws TypeError if fetch would send another path than the given one
 */
export type Request = <Data = unknown>(method: string, path: string, options?: RequestOptions) => Promise<Answer<Data>>

export function createRequest(settings: Settings): Request {
  /** The clock of the service minus the local one, once an answer has shown that they differ. */
  let clockOffsetMs = 0

  return async function request<Data>(method: string, path: string, options: RequestOptions = {}) {
    const sent = prepare(settings, method.toUpperCase(), path, options)
    const isRepeatable = options.isRepeatable ?? isRepeatableByDefault(sent, options.body)
    let outcome: Outcome = 'NOT_EXECUTED'
    let hasSetClock = false
    for (let failures = 0; ; ) {
      if (sent.signal?.aborted) throw aborted(sent, outcome)
      let failure: RequestError
      try {
        const result = await attempt<Data>(settings, sent, settings.now() + clockOffsetMs, outcome)
        if ('answer' in result) return result.answer
        failure = result.error
        const offsetMs = result.timestamp - settings.now()
        if (result.error.code === 'GA2013' && !hasSetClock && offsetMs <= longestOffsetMs) {
          // The timestamp was too old or in the future, or a proxy sent the request twice.
          hasSetClock = true
          clockOffsetMs = offsetMs
          continue
        }
      } catch (error) {
        if (!(error instanceof RequestError)) throw error
        failure = error
      }
      outcome = failure.outcome
      const delayMs = retryDelayMs(failure, failures++)
      const isSafe = outcome === 'NOT_EXECUTED' || isRepeatable
      if (delayMs === null || !isSafe || failures > settings.maxRetries) throw failure
      await pause(delayMs, sent.signal)
    }
  }
}

function prepare(settings: Settings, method: string, path: string, options: RequestOptions): Sent {
  const { query = {}, body, signal, timeoutMs = settings.timeoutMs } = options
  const url = new URL(settings.origin + path + queryString(query))
  if (url.origin !== settings.origin || url.pathname !== path)
    throw new TypeError(
      `The path "${path}" cannot be sent: begin it with a slash, percent-encode it, and pass the query string in "query"`,
    )
  const { bizId } = (typeof body === 'object' ? body : {}) as { bizId?: unknown }
  return {
    method,
    path,
    url,
    bizId: typeof bizId === 'string' ? bizId : null,
    // Written once, so that all attempts send and sign the same bytes.
    body: typeof body === 'object' ? JSON.stringify(body) : body,
    timeoutMs,
    signal,
    isRead: method === 'GET',
  }
}

function isRepeatableByDefault({ isRead, bizId }: Sent, body: RequestOptions['body']): boolean {
  const { transfers } = (typeof body === 'object' ? body : {}) as { transfers?: unknown }
  const isBatch = Array.isArray(transfers) && transfers.every(item => typeof item?.bizId === 'string')
  return isRead || bizId !== null || isBatch
}

function aborted(request: Sent, outcome: Outcome): AbortedError {
  return new AbortedError('was aborted', request, outcome, request.signal?.reason)
}

/**
 * How far the clock of the service may be ahead. Whoever answers in place of the service could name a later time, keep the
 * requests that are signed for it, and send them then.
 */
const longestOffsetMs = 24 * 60 * 60 * 1000
const firstDelayMs = 250
const longestDelayMs = 10_000
/** What `Retry-After` may ask for. After a longer time, somebody else should decide what to do. */
const longestAskedDelayMs = 60_000
const transientStatuses: readonly number[] = [429, 502, 503, 504]

/**
 * How long to wait before a failed request is sent again. Null if another attempt would fail too.
 *
 * @param failures how often it has failed before
 */
export function retryDelayMs(error: RequestError, failures: number): number | null {
  // Half of it is random, so that clients that failed together do not return together.
  const share = 0.5 + Math.random() / 2
  const backoffMs = Math.min(firstDelayMs * 2 ** failures, longestDelayMs) * share
  if (error instanceof ConnectionError) return backoffMs
  if (!(error instanceof ApiError || error instanceof UnexpectedAnswerError)) return null
  if (!transientStatuses.includes(error.status)) return null
  if (error.retryAfterSeconds === null) return backoffMs
  const askedMs = error.retryAfterSeconds * 1000
  return askedMs > longestAskedDelayMs ? null : askedMs + firstDelayMs * share
}
