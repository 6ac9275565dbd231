/**
 * A call got no answer. `sent` tells whether it may have been carried out all the same, `sentAtMs` when it left at the
 * latest, on the clock of `performance.now()`: calls may wait here first.
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

const lost = 'core was asked and did not answer: find out whether the call was carried out before you repeat it'
const unsent = 'core is out of reach or overloaded: the call was not sent; check that core runs, and its URL'

/** No core could be reached in time, or one was and did not answer. */
export class CoreUnreachable extends NoAnswerError {
  override readonly name = 'CoreUnreachable'

  constructor(sent: boolean, cause?: unknown, sentAtMs?: number) {
    super(sent ? lost : unsent, sent, sentAtMs, cause)
  }
}

/** What listens at a core's URL refused the whole request: a wrong token, a wrong URL, a proxy without a core. */
export class CoreRejected extends NoAnswerError {
  override readonly name = 'CoreRejected'
  /** Of the HTTP response. */
  readonly status: number

  constructor(origin: string, status: number, body: string, sentAtMs?: number) {
    // What is refused as a whole was not begun; a 500 may have come at any time.
    const sent = status >= 500 && status !== 503
    super(`${origin} answered HTTP ${status}: ${remedyOf(status) ?? body.slice(0, 200)}`, sent, sentAtMs)
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
    super(
      sent ? 'the call was aborted after it was sent' : 'the call was aborted before it was sent',
      sent,
      sentAtMs,
      reason,
    )
  }
}

/**
 * Whether a request failed before a byte of it left. What an established connection can fail with too (a host that is
 * out of reach, a time-out) counts only when it came of connecting.
 */
export function wasNeverSent(error: unknown): boolean {
  const { code, syscall, errors } = error as { code?: string; syscall?: string; errors?: unknown[] }
  // A name that has several addresses.
  if (errors) return errors.every(wasNeverSent)
  return syscall === 'connect' || syscall === 'getaddrinfo' || code === 'UND_ERR_CONNECT_TIMEOUT'
}
