import { type Result, readAnswer } from './answer.ts'
import {
  AbortedError,
  ConnectionError,
  type FailedRequest,
  type Outcome,
  type RequestError,
  TimeoutError,
  UnexpectedResponseError,
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
    return await readAnswer(response, request, earlier)
  } catch (error) {
    throw error instanceof UnexpectedResponseError ? error : failureOf(error, request, deadline.signal, earlier)
  } finally {
    deadline.clear()
  }
}

/** The error for an attempt without a response. */
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
