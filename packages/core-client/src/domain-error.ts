import { isTRPCClientError } from '@trpc/client'
import type { inferRouterError } from '@trpc/server'
import { DomainError, isErrorCode } from '@workspace-wallet/contract'
import type { AppRouter } from '../../../services/core/src/router.ts'

/** `data` of a TRPCClientError: what core says of a failed call. */
export type CoreErrorData = inferRouterError<AppRouter>['data']

/**
 * The public code, with its details, that core answered a call with; null when a call failed for another reason. Use
 * `code` to tell them apart, and `details`, which are of the type of the code.
 *
 * Null, too, for a code that this program does not know, because the core is newer: the call was refused, and
 * `error.data.appError` says with which code. Rethrow what this function returns null for.
 */
export function domainErrorOf(error: unknown): DomainError | null {
  if (!isTRPCClientError<AppRouter>(error)) return null
  const appError = error.data?.appError
  return appError?.kind === 'domain' && isErrorCode(appError.code)
    ? DomainError.fromDetails(appError.code, appError.details)
    : null
}
