import { setTimeout as sleep } from 'node:timers/promises'
import { domainErrorOf, NoAnswerError } from '@workspace-wallet/core-client'

const attempts = 60

/**
 * Repeats a call of core for as long as it certainly was not carried out: after S002 when its `retryAfterSeconds` have
 * passed, and after a second when the call was not sent. For set-ups: on a busy machine, core rejects some calls.
 *
 * @throws the call's last error, when it is another one or after a minute
 */
export async function retryUnavailable<Result>(call: () => Promise<Result>): Promise<Result> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await call()
    } catch (error) {
      const seconds = retryAfterSeconds(error)
      if (seconds === null || attempt === attempts) throw error
      await sleep(1000 * seconds)
    }
  }
}

/** Null when the call must not be repeated: it was rejected for another reason, or may have been carried out. */
function retryAfterSeconds(error: unknown): number | null {
  const { cause } = error as { cause?: unknown }
  if (cause instanceof NoAnswerError) return cause.sent ? null : 1
  const domainError = domainErrorOf(error)
  return domainError?.code === 'S002' ? (domainError.details as { retryAfterSeconds: number }).retryAfterSeconds : null
}
