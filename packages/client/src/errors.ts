import type { KnownErrorCode } from './records.ts'

/**
 * Whether a failed command may have taken effect. `UNKNOWN`: it may have, or still will. Send it again with the same body,
 * and so with the same bizId, until you get a response: it takes effect only once. Reads change nothing, so a failed read
 * is always `NOT_EXECUTED`.
 */
export type Outcome = 'NOT_EXECUTED' | 'UNKNOWN'

/** A request, as errors describe it. */
export type FailedRequest = {
  method: string
  path: string
  /** The bizId of the command, also if the client generated it. Null for reads, batches, releases and changes of status. */
  bizId: string | null
}

/** A request failed. All errors of requests extend this class. */
export class RequestError extends Error {
  override readonly name: string = 'RequestError'
  readonly method: string
  readonly path: string
  readonly bizId: string | null
  /** Covers all attempts: if one may have taken effect, it is `UNKNOWN`. */
  readonly outcome: Outcome

  constructor(message: string, { method, path, bizId }: FailedRequest, outcome: Outcome, cause?: unknown) {
    super(`${method} ${path} ${message}`, cause === undefined ? undefined : { cause })
    this.method = method
    this.path = path
    this.bizId = bizId
    this.outcome = outcome
  }
}

/** The contents of a failure envelope and its headers. */
export type ApiFailure = {
  status: number
  code: string
  /** The symbolic name of the code. */
  reason: string
  detail: string | null
  requestId: string | null
  retryAfterSeconds: number | null
  batchIndex: number | null
  transferId: string | null
}

/** The service answered with an error code. docs/errors.md of the service lists them. */
export class ApiError extends RequestError {
  override readonly name = 'ApiError'
  /** Such as `T002`. A newer service may return others: treat an unknown code by its `status`. */
  readonly code: KnownErrorCode | (string & {})
  /** The symbolic name of the code, such as `INSUFFICIENT_BALANCE`. */
  readonly reason: string
  /** A sentence in the language of `locale` that says what to fix. For people: programs compare `code`. */
  readonly detail: string | null
  /** Identifies the request in the logs of the service. Quote it when you report a problem. */
  readonly requestId: string | null
  /** The HTTP status. */
  readonly status: number
  /** How long to wait before another attempt. Set with status 429 and 503. */
  readonly retryAfterSeconds: number | null
  /** The zero-based place of the transfer that made a batch fail. */
  readonly batchIndex: number | null
  /** With S003: the transferId that the order has if the command took effect. */
  readonly transferId: string | null

  constructor(failure: ApiFailure, request: FailedRequest, outcome: Outcome) {
    const { status, code, reason, detail, requestId } = failure
    const quote = requestId === null ? '' : ` (${requestId})`
    super(`failed with ${status} ${code} ${reason}${quote}${detail === null ? '' : `: ${detail}`}`, request, outcome)
    this.code = code
    this.reason = reason
    this.detail = detail
    this.requestId = requestId
    this.status = status
    this.retryAfterSeconds = failure.retryAfterSeconds
    this.batchIndex = failure.batchIndex
    this.transferId = failure.transferId
  }
}

/** Something else answered, such as a proxy or another server. */
export class UnexpectedResponseError extends RequestError {
  override readonly name = 'UnexpectedResponseError'
  /** The HTTP status; 0 for a redirect in a browser. */
  readonly status: number
  readonly retryAfterSeconds: number | null

  constructor(status: number, retryAfterSeconds: number | null, request: FailedRequest, outcome: Outcome) {
    super(
      `got an answer with status ${status} that is not one of this service: check baseUrl, and the proxies on the way`,
      request,
      outcome,
    )
    this.status = status
    this.retryAfterSeconds = retryAfterSeconds
  }
}

/** The service could not be reached, or the connection was lost. `cause` is the error of fetch. */
export class ConnectionError extends RequestError {
  override readonly name: string = 'ConnectionError'
}

/** No complete answer within `timeoutMs`. */
export class TimeoutError extends ConnectionError {
  override readonly name = 'TimeoutError'
}

/** The caller's signal was aborted. `cause` is the signal's reason. Its `name` is that of the DOM's AbortError. */
export class AbortedError extends RequestError {
  override readonly name = 'AbortError'
}

/**
 * The event log is not the one that was read before: an earlier copy of the database was restored, and events that were
 * read are gone. Copy the data again, and follow the log from there.
 */
export class HistoryReplacedError extends Error {
  override readonly name = 'HistoryReplacedError'
  /** The cursor that the log does not continue. */
  readonly after: number
  /** The event that was read at this position. Undefined if the caller did not say. */
  readonly expectedEventId: string | null | undefined
  /** The event that is at this position now. Undefined if the log ends before it (E001). */
  readonly foundEventId: string | null | undefined

  constructor(after: number, expectedEventId?: string | null, foundEventId?: string | null, cause?: unknown) {
    const found = foundEventId === undefined ? 'The log ends before position' : 'Another event is at position'
    super(
      `The event log was replaced by an earlier copy. ${found} ${after}: copy your data from the service again.`,
      cause === undefined ? undefined : { cause },
    )
    this.after = after
    this.expectedEventId = expectedEventId
    this.foundEventId = foundEventId
  }
}
