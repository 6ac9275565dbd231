import { DomainError, isDomainError } from '@workspace-wallet/contract'
import { domainErrorOf, NoAnswerError } from '@workspace-wallet/core-client'

/**
 * The public error for a failed call: the error that core returned, or S002 if no core answered. A DomainError is
 * returned as it is. Null for any other failure, which is a bug.
 */
export function toDomainError(error: unknown): DomainError | null {
  if (isDomainError(error)) return error
  return noAnswerCause(error) ? new DomainError('S002', { retryAfterSeconds: 1 }) : domainErrorOf(error)
}

/** Why a call of core got no answer; null if it got one. */
export function noAnswerCause(error: unknown): NoAnswerError | null {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof NoAnswerError ? cause : null
}
