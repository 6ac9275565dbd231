import { setTimeout as sleep } from 'node:timers/promises'
import { domainErrorOf, noAnswerErrorOf } from '@workspace-wallet/core-client'

const attempts = 60

/**
 * Retries a call to core while it was certainly not executed: after S002, once its `retryAfterSeconds` have passed, and
 * after a second if the call was not sent. For set-ups, because core rejects some calls on a busy machine.
 *
 * @throws the last error of the call, if it is another one or after 60 attempts
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

/** Null if the call must not be retried: it was rejected for another reason, or may have been executed. */
function retryAfterSeconds(error: unknown): number | null {
  const noAnswer = noAnswerErrorOf(error)
  if (noAnswer) return noAnswer.sent ? null : 1
  const domainError = domainErrorOf(error)
  return domainError?.code === 'S002' ? domainError.details.retryAfterSeconds : null
}
