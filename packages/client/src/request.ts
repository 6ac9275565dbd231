import type { Answer } from './answer.ts'
import { attempt, type PreparedRequest } from './attempt.ts'
import {
  AbortedError,
  ApiError,
  ConnectionError,
  type Outcome,
  RequestError,
  UnexpectedResponseError,
} from './errors.ts'
import { pause } from './pause.ts'
import { type Query, queryString } from './queries.ts'
import type { Settings } from './settings.ts'

/** The options of every call. */
export type CallOptions = {
  /** Aborting it ends the call with an AbortedError. The service may still execute a command that was sent. */
  signal?: AbortSignal | undefined
  /** How long one attempt may take, in milliseconds. Default: that of the client. */
  timeoutMs?: number | undefined
}

export type RequestOptions = CallOptions & {
  query?: Query | undefined
  /** PreparedRequest as JSON; a string is sent as it is. */
  body?: object | string | undefined
  /**
   * Whether the request may be sent again after an attempt that may have taken effect. Default: for GET, and for a body with
   * a bizId, or with one in each transfer of a batch.
   */
  isRepeatable?: boolean | undefined
}

/**
 * Signs and sends one request, retries it, and returns the response of a success.
 *
 * @param path of the URL, percent-encoded, without a query string
 * @throws RequestError see its subclasses
 * @throws TypeError if fetch would send another path than the given one
 */
export type Request = <Data = unknown>(method: string, path: string, options?: RequestOptions) => Promise<Answer<Data>>

/** A `Request` that returns only the `data` of the response. */
export type Send = <Data>(...request: Parameters<Request>) => Promise<Data>

export function createRequest(settings: Settings): Request {
  /** The clock of the service minus the local one. 0 until a response shows that they differ. */
  let clockOffsetMs = 0

  return async function request<Data>(method: string, path: string, options: RequestOptions = {}) {
    const prepared = prepare(settings, method.toUpperCase(), path, options)
    const isRepeatable = options.isRepeatable ?? isRepeatableByDefault(prepared, options.body)
    let outcome: Outcome = 'NOT_EXECUTED'
    let hasSetClock = false
    for (let failures = 0; ; ) {
      if (prepared.signal?.aborted) throw new AbortedError('was aborted', prepared, outcome, prepared.signal.reason)
      let failure: RequestError
      try {
        const result = await attempt<Data>(settings, prepared, settings.now() + clockOffsetMs, outcome)
        if ('answer' in result) return result.answer
        failure = result.error
        const offsetMs = result.timestamp - settings.now()
        if (result.error.code === 'GA2013' && !hasSetClock && offsetMs <= maxOffsetMs) {
          // The timestamp differs too much from the service's time, or a proxy sent the request twice.
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
      await pause(delayMs, prepared.signal)
    }
  }
}

function prepare(settings: Settings, method: string, path: string, options: RequestOptions): PreparedRequest {
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
    // Serialized once, so that all attempts sign and send the same bytes.
    body: typeof body === 'object' ? JSON.stringify(body) : body,
    timeoutMs,
    signal,
    isRead: method === 'GET',
  }
}

function isRepeatableByDefault({ isRead, bizId }: PreparedRequest, body: RequestOptions['body']): boolean {
  const { transfers } = (typeof body === 'object' ? body : {}) as { transfers?: unknown }
  const isBatch = Array.isArray(transfers) && transfers.every(item => typeof item?.bizId === 'string')
  return isRead || bizId !== null || isBatch
}

/**
 * How far the clock of the service may be ahead. Somebody who answers in place of the service could claim a later time, keep
 * the requests that are signed for it, and send them then.
 */
const maxOffsetMs = 24 * 60 * 60 * 1000
const firstDelayMs = 250
const maxDelayMs = 10_000
/** If `Retry-After` asks for more, the call fails, and the caller decides what to do. */
const maxRetryAfterMs = 60_000
const transientStatuses: readonly number[] = [429, 502, 503, 504]

/**
 * How long to wait before a failed request is sent again, in milliseconds. Null if another attempt would fail too.
 *
 * @param failures how many attempts failed before this one
 */
export function retryDelayMs(error: RequestError, failures: number): number | null {
  // Up to half of it is random, so that clients that failed together do not retry together.
  const share = 0.5 + Math.random() / 2
  const backoffMs = Math.min(firstDelayMs * 2 ** failures, maxDelayMs) * share
  if (error instanceof ConnectionError) return backoffMs
  if (!(error instanceof ApiError || error instanceof UnexpectedResponseError)) return null
  if (!transientStatuses.includes(error.status)) return null
  if (error.retryAfterSeconds === null) return backoffMs
  const askedMs = error.retryAfterSeconds * 1000
  return askedMs > maxRetryAfterMs ? null : askedMs + firstDelayMs * share
}
