import { isTRPCClientError } from '@trpc/client'
import type { inferRouterError } from '@trpc/server'
import { DomainError, isErrorCode } from '@workspace-wallet/contract'
import type { AppRouter } from '../../../services/core/src/router.ts'

/** `data` of a TRPCClientError: core's description of a failed call. */
export type CoreErrorData = inferRouterError<AppRouter>['data']

/**
 * The public error that core returned for a call: its `code`, and the `details` of that code. Null if the call failed for
 * another reason.
 *
 * Also null if core is newer and this program does not know the code: `error.data.appError` has it. Rethrow every error
 * for which this function returns null.
 */
export function domainErrorOf(error: unknown): DomainError | null {
  if (!isTRPCClientError<AppRouter>(error)) return null
  const appError = error.data?.appError
  return appError?.kind === 'domain' && isErrorCode(appError.code)
    ? DomainError.fromDetails(appError.code, appError.details)
    : null
}
