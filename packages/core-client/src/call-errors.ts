import { isTRPCClientError } from '@trpc/client'
import type { inferRouterError } from '@trpc/server'
import { type DomainError, type ErrorCode, parseDomainError } from '@workspace-wallet/contract'
import type { AppRouter } from '../../../services/core/src/routers/app-router.ts'
import { NoAnswerError } from './errors.ts'

/** `data` of a TRPCClientError: core's description of a failed call. */
export type CoreErrorData = inferRouterError<AppRouter>['data']

/** One invalid value in the input of a call: its `path`, such as `order.amount`, and in `message` what it must be. */
export type InputFault = NonNullable<CoreErrorData['inputFaults']>[number]

/** A public error that core returned. Comparing its `code` narrows the type of its `details`. */
export type CoreDomainError = { [Code in ErrorCode]: DomainError<Code> }[ErrorCode]

/**
 * The public error that core returned for a call: its `code`, and the `details` of that code. Null if the call failed for
 * another reason, if core is newer and has a code that this version does not know, or if the details are malformed:
 * `error.data.appError` has what core sent.
 */
export function domainErrorOf(error: unknown): CoreDomainError | null {
  const appError = dataOf(error)?.appError
  return appError?.kind === 'domain'
    ? (parseDomainError(appError.code, appError.details) as CoreDomainError | null)
    : null
}

/** The faults in the input of a call. Null if the call failed for another reason. */
export function inputFaultsOf(error: unknown): InputFault[] | null {
  return dataOf(error)?.inputFaults ?? null
}

/** The reason that core did not answer a call: CoreUnreachable, CoreRejected or CallAborted. Null if core answered. */
export function noAnswerErrorOf(error: unknown): NoAnswerError | null {
  const cause = error instanceof Error ? error.cause : undefined
  return cause instanceof NoAnswerError ? cause : null
}

function dataOf(error: unknown): CoreErrorData | null {
  return isTRPCClientError<AppRouter>(error) ? (error.data ?? null) : null
}
