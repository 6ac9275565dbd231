import { DomainError, isDomainError } from '@workspace-wallet/contract'
import { domainErrorOf, noAnswerErrorOf } from '@workspace-wallet/core-client'

/**
 * The public error for a failed call: the error that core returned, or S002 if no core answered. A DomainError is
 * returned as it is. Null for any other failure, which is a bug.
 */
export function toDomainError(error: unknown): DomainError | null {
  if (isDomainError(error)) return error
  return noAnswerErrorOf(error) ? new DomainError('S002', { retryAfterSeconds: 1 }) : domainErrorOf(error)
}
