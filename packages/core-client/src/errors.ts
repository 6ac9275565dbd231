import { type ErrorCode, isErrorCode } from '@workspace-wallet/contract'

/**
 * Core did not answer a call. The message says why, at which URL, and how to fix it. It never contains the token.
 */
export class NoAnswerError extends Error {
  override readonly name: string = 'NoAnswerError'
  /** Whether core may have executed the call. */
  readonly sent: boolean
  /** When the call was sent, on the clock of `performance.now()`. If it was not sent: when it failed. */
  readonly sentAtMs: number

  constructor(message: string, sent: boolean, sentAtMs = performance.now(), cause?: unknown) {
    super(message, { cause })
    this.sent = sent
    this.sentAtMs = sentAtMs
  }
}

/** No core could be reached in time, or its response was lost. */
export class CoreUnreachable extends NoAnswerError {
  override readonly name = 'CoreUnreachable'
}

/** The server at the URL rejected the whole request: wrong token, wrong URL, or a proxy without a core. */
export class CoreRejected extends NoAnswerError {
  override readonly name = 'CoreRejected'
  /** The HTTP status. */
  readonly status: number

  /** @param sent a rejected request was not executed. A 500 can occur at any time */
  constructor(url: string, status: number, body: string, sentAtMs?: number, sent = status >= 500 && status !== 503) {
    super(`${url} returned HTTP ${status}: ${remedyOf(status, sent, publicCodeIn(body))}`, sent, sentAtMs)
    this.status = status
  }
}

/** The caller's signal was aborted. `cause` is the signal's reason. */
export class CallAborted extends NoAnswerError {
  override readonly name = 'CallAborted'

  constructor(reason: unknown, sent: boolean, sentAtMs?: number) {
    super(`the call was aborted ${sent ? 'after' : 'before'} it was sent`, sent, sentAtMs, reason)
  }
}

/** How to correct a URL that is not core's, for messages. */
export const useUrlOfCore = "use the URL of core, or of a gateway's internal listener"

export const mayBeExecuted = 'the call may have been executed, so check that before you repeat it'

function remedyOf(status: number, sent: boolean, code: ErrorCode | undefined): string {
  if (status === 401) return 'core does not know this service token; use one of its SERVICE_TOKENS'
  if (status === 403) return `a proxy rejected the call before core received it; allow it there, or ${useUrlOfCore}`
  if (status === 404 && code) return `this is the public API of a gateway; ${useUrlOfCore}`
  if (status === 413) return 'the call is larger than core, or a proxy in front of it, accepts; send less in one call'
  if (status === 503)
    return 'no core is available there, and the call was not executed; check that core runs, and retry'
  if (status >= 500)
    return `core, or a proxy in front of it, failed, and its log says why${sent ? `; ${mayBeExecuted}` : ''}`
  return `this is not a core of this version; ${useUrlOfCore}`
}

/** The code in the envelope of a gateway. Nothing else of a body is used in messages, because a server may echo the token. */
function publicCodeIn(body: string): ErrorCode | undefined {
  try {
    const { code } = JSON.parse(body) as { code?: unknown }
    return typeof code === 'string' && isErrorCode(code) ? code : undefined
  } catch {
    return undefined
  }
}
