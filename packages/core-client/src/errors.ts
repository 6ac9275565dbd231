/**
 * A call got no answer. `sent`: whether core may have executed it. `sentAtMs`: when it was sent at the latest, on the clock
 * of `performance.now()`; a call can wait in a queue first.
 */
export class NoAnswerError extends Error {
  override readonly name: string = 'NoAnswerError'
  readonly sent: boolean
  readonly sentAtMs: number

  constructor(message: string, sent: boolean, sentAtMs = performance.now(), cause?: unknown) {
    super(message, { cause })
    this.sent = sent
    this.sentAtMs = sentAtMs
  }
}

const lost = 'core did not answer: check whether the call was executed before you repeat it'
const unsent = 'core is unreachable or overloaded, and the call was not sent: check that core runs, and its URL'

/** No core could be reached in time, or the answer was lost. */
export class CoreUnreachable extends NoAnswerError {
  override readonly name = 'CoreUnreachable'

  constructor(sent: boolean, cause?: unknown, sentAtMs?: number) {
    super(sent ? lost : unsent, sent, sentAtMs, cause)
  }
}

/** The server at the URL rejected the whole request: wrong token, wrong URL, or a proxy without a core. */
export class CoreRejected extends NoAnswerError {
  override readonly name = 'CoreRejected'
  /** Of the HTTP response. */
  readonly status: number

  constructor(url: string, status: number, body: string, sentAtMs?: number) {
    // A rejected request was not executed. A 500 can occur at any time.
    const sent = status >= 500 && status !== 503
    super(`${url} returned HTTP ${status}: ${remedyOf(status) ?? body.slice(0, 200)}`, sent, sentAtMs)
    this.status = status
  }
}

function remedyOf(status: number): string | undefined {
  if (status === 401) return 'core does not know this token; use one of its SERVICE_TOKENS'
  if (status === 404)
    return "this is not a core of this version; use the URL of core, or of a gateway's internal listener, not the public URL"
  return undefined
}

/** The caller's signal was aborted. `cause` is the signal's reason. */
export class CallAborted extends NoAnswerError {
  override readonly name = 'CallAborted'

  constructor(reason: unknown, sent: boolean, sentAtMs?: number) {
    super(`the call was aborted ${sent ? 'after' : 'before'} it was sent`, sent, sentAtMs, reason)
  }
}

/**
 * Whether a request failed before any byte of it was sent. Errors that can also occur on an established connection, such
 * as an unreachable host or a time-out, count only if connecting failed.
 */
export function wasNeverSent(error: unknown): boolean {
  const { code, syscall, errors } = error as { code?: string; syscall?: string; errors?: unknown[] }
  // A host name with several addresses fails with one error for each.
  if (errors) return errors.every(wasNeverSent)
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT'
}
