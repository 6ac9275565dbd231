import {
  AbortedError,
  ApiError,
  ConnectionError,
  type FailedRequest,
  type Outcome,
  type RequestError,
  TimeoutError,
  UnexpectedAnswerError,
} from './errors.ts'
import type { Settings } from './settings.ts'
import { signedHeaders } from './signing.ts'

/** A request that is ready to be signed. All attempts send the same one. */
export type PreparedRequest = FailedRequest & {
  url: URL
  body: string | undefined
  timeoutMs: number
  signal: AbortSignal | undefined
  /** Whether it is a GET, which changes nothing. */
  isRead: boolean
}

/** A successful answer. */
export type Answer<Data> = {
  data: Data
  status: number
  /** Identifies the request in the logs of the service. Quote it when you report a problem. */
  requestId: string | null
  /** The time of the service, in milliseconds since the Unix epoch. */
  timestamp: number
  headers: Headers
}

/** The response envelope (section 2.1). */
type Envelope = {
  success: boolean
  code: string
  message: string
  timestamp: number
  data: unknown
  detail?: string
}

/** The answer of the service: a success or an error code. `timestamp`: see `Answer`. */
export type Result<Data> = { answer: Answer<Data> } | { error: ApiError; timestamp: number }

/**
 * Signs a request with a new nonce and sends it once.
 *
 * @param nowMs the estimated time of the service, in milliseconds since the Unix epoch
 * @param earlier the outcome of the attempts before this one
 * @throws RequestError if the service does not answer
 */
export async function attempt<Data>(
  { credentials, locale, fetch }: Settings,
  request: PreparedRequest,
  nowMs: number,
  earlier: Outcome,
): Promise<Result<Data>> {
  const { method, url, body } = request
  const timestamp = String(Math.floor(nowMs / 1000))
  const signed = await signedHeaders(credentials, { method, target: url.pathname, body, timestamp })
  const deadline = startDeadline(request)
  try {
    const response = await fetch(url, {
      method,
      headers: {
        ...signed,
        'X-LOCALE': locale,
        ...(body !== undefined && { 'Content-Type': 'application/json' }),
      },
      ...(body !== undefined && { body }),
      signal: deadline.signal,
      // The signature is valid for this URL only, and replaces cookies.
      redirect: 'manual',
      credentials: 'omit',
      cache: 'no-store',
    })
    return readAnswer(response, await readText(response), request, earlier)
  } catch (error) {
    throw error instanceof UnexpectedAnswerError ? error : failureOf(error, request, deadline.signal, earlier)
  } finally {
    deadline.clear()
  }
}

/** The error for an attempt without an answer. */
function failureOf(error: unknown, request: PreparedRequest, deadline: AbortSignal, earlier: Outcome): RequestError {
  const outcome: Outcome = request.isRead ? 'NOT_EXECUTED' : 'UNKNOWN'
  if (request.signal?.aborted) return new AbortedError('was aborted', request, outcome, request.signal.reason)
  if (deadline.aborted)
    return new TimeoutError(`got no answer within ${request.timeoutMs} ms`, request, outcome, deadline.reason)
  const cause = causeOf(error)
  const wasSent = !wasNeverSent(cause)
  const what = wasSent ? 'got no answer' : 'could not be sent'
  const message = `${what} (${describe(cause)}): check baseUrl, and that the service runs`
  return new ConnectionError(message, request, wasSent ? outcome : earlier, error)
}

/**
 * A signal that aborts after the time-out, or with the caller's signal. `AbortSignal.any` would leave a listener on a
 * long-lived signal of the caller.
 */
function startDeadline({ timeoutMs, signal }: PreparedRequest): { signal: AbortSignal; clear: () => void } {
  const controller = new AbortController()
  const timer = setTimeout(
    () => controller.abort(new DOMException('The attempt took too long.', 'TimeoutError')),
    timeoutMs,
  )
  const abort = () => controller.abort(signal?.reason)
  if (signal?.aborted) abort()
  signal?.addEventListener('abort', abort)
  return {
    signal: controller.signal,
    clear() {
      clearTimeout(timer)
      signal?.removeEventListener('abort', abort)
    },
  }
}

/** More than the service sends. This bounds the memory that another server can make the client use. */
const maxAnswerBytes = 16 * 1024 * 1024

/** The text of a body. Empty if it is longer than an answer of the service can be. */
async function readText({ body }: Response): Promise<string> {
  if (!body) return ''
  const reader = body.getReader()
  const decoder = new TextDecoder()
  let text = ''
  for (let bytes = 0; ; ) {
    const { done, value } = await reader.read()
    if (done) return text + decoder.decode()
    bytes += value.length
    if (bytes > maxAnswerBytes) {
      await reader.cancel()
      return ''
    }
    text += decoder.decode(value, { stream: true })
  }
}

function readAnswer<Data>(response: Response, text: string, request: PreparedRequest, earlier: Outcome): Result<Data> {
  const { status, headers } = response
  const mayBeExecuted = !request.isRead && (status < 300 || (status >= 500 && status !== 503))
  const outcome = mayBeExecuted ? 'UNKNOWN' : earlier
  const envelope = parseEnvelope(text)
  const requestId = headers.get('X-Request-Id')
  const retryAfterSeconds = integerOf(headers, 'Retry-After')
  if (!envelope) {
    const isUnknown = mayBeExecuted || (status === 503 && !request.isRead)
    throw new UnexpectedAnswerError(status, retryAfterSeconds, request, isUnknown ? 'UNKNOWN' : earlier)
  }
  const { data, timestamp } = envelope
  if (envelope.success) return { answer: { data: data as Data, status, requestId, timestamp, headers } }
  const failure = {
    status,
    code: envelope.code,
    reason: envelope.message,
    detail: envelope.detail ?? null,
    requestId,
    retryAfterSeconds,
    batchIndex: integerOf(headers, 'X-Batch-Index'),
    transferId: headers.get('X-Transfer-Id'),
  }
  return { error: new ApiError(failure, request, outcome), timestamp }
}

function parseEnvelope(text: string): Envelope | undefined {
  try {
    const envelope = JSON.parse(text) as Envelope
    const { success, code, message, timestamp, detail = '' } = envelope
    const isEnvelope =
      typeof success === 'boolean' &&
      typeof code === 'string' &&
      typeof message === 'string' &&
      typeof detail === 'string' &&
      Number.isFinite(timestamp)
    return isEnvelope ? envelope : undefined
  } catch {
    return undefined
  }
}

function integerOf(headers: Headers, name: string): number | null {
  const text = headers.get(name)
  return text !== null && /^\d+$/.test(text) ? Number(text) : null
}

type SystemError = { message?: string; code?: string; syscall?: string; errors?: SystemError[] }

/** Node's fetch has the error of the connection as its cause. */
function causeOf(error: unknown): SystemError {
  return ((error as Error).cause ?? error) as SystemError
}

function describe({ message, code }: SystemError): string {
  return message || code || 'unknown error'
}

/** Whether the request failed before it was sent, because connecting failed. False in browsers, which do not tell. */
function wasNeverSent({ code, syscall, errors }: SystemError): boolean {
  // A host name with several addresses fails with one error for each.
  if (errors) return errors.every(wasNeverSent)
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT'
}
