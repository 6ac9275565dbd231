import {
  AbortedError,
  ApiError,
  ConnectionError,
  type FailedRequest,
  type Outcome,
  TimeoutError,
  UnexpectedAnswerError,
} from './errors.ts'
import type { Settings } from './settings.ts'
import { signedHeaders } from './signing.ts'

/** What is sent: the same for each attempt. */
export type Sent = FailedRequest & {
  url: URL
  body: string | undefined
  timeoutMs: number
  signal: AbortSignal | undefined
  /** Whether it changes nothing. */
  isRead: boolean
}

/** A successful answer. */
export type Answer<Data> = {
  data: Data
  status: number
  /** Quote it to the operators of the service: it is in their logs. */
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

/** An answer, or how the attempt failed. `timestamp`: see `Answer`. */
export type Result<Data> = { answer: Answer<Data> } | { error: ApiError; timestamp: number }

/**
 * Signs a request with a new nonce and sends it once.
 *
 * @param nowMs the time of the service, as far as it is known
 * @param earlier the outcome of the attempts before this one
 * @throws RequestError if there is no answer of the service
 */
export async function attempt<Data>(
  { credentials, locale, fetch }: Settings,
  request: Sent,
  nowMs: number,
  earlier: Outcome,
): Promise<Result<Data>> {
  const { method, url, body, isRead } = request
  const possible: Outcome = isRead ? 'NOT_EXECUTED' : 'UNKNOWN'
  const timestamp = String(Math.floor(nowMs / 1000))
  const signed = await signedHeaders(credentials, { method, target: url.pathname, body, timestamp })
  const limits = limitsOf(request)
  try {
    const response = await fetch(url, {
      method,
      headers: {
        ...signed,
        'X-LOCALE': locale,
        ...(body === undefined ? {} : { 'Content-Type': 'application/json' }),
      },
      ...(body === undefined ? {} : { body }),
      signal: limits.signal,
      // What was signed is for this URL, and needs no cookies.
      redirect: 'manual',
      credentials: 'omit',
      cache: 'no-store',
    })
    return readAnswer(response, await readText(response), request, earlier)
  } catch (error) {
    if (error instanceof UnexpectedAnswerError) throw error
    if (request.signal?.aborted) throw new AbortedError('was aborted', request, possible, request.signal.reason)
    if (limits.signal.aborted)
      throw new TimeoutError(`got no answer within ${request.timeoutMs} ms`, request, possible, limits.signal.reason)
    const cause = causeOf(error)
    const wasSent = !wasNeverSent(cause)
    throw new ConnectionError(
      `${wasSent ? 'got no answer' : 'could not be sent'} (${describe(cause)}): check baseUrl, and that the service runs`,
      request,
      wasSent ? possible : earlier,
      error,
    )
  } finally {
    limits.clear()
  }
}

/** Aborts after the time-out, or with the caller's signal. AbortSignal.any would keep a listener on a long-lived signal. */
function limitsOf({ timeoutMs, signal }: Sent): { signal: AbortSignal; clear: () => void } {
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

/** The service sends less. It bounds the memory that another server can make this client use. */
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

function readAnswer<Data>(response: Response, text: string, request: Sent, earlier: Outcome): Result<Data> {
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
    const texts = [code, message, detail].every(each => typeof each === 'string')
    return typeof success === 'boolean' && texts && Number.isFinite(timestamp) ? envelope : undefined
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

/** Whether the connection failed before it was there. Browsers do not say. */
function wasNeverSent({ code, syscall, errors }: SystemError): boolean {
  // A host name with several addresses fails with one error for each.
  if (errors) return errors.every(wasNeverSent)
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT'
}
