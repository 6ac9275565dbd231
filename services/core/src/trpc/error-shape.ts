import type { TRPCError } from '@trpc/server'
import { getHTTPStatusCodeFromError } from '@trpc/server/http'
import { TRPC_ERROR_CODES_BY_KEY } from '@trpc/server/rpc'
import { AdminError, type AdminErrorCode, type ErrorCode, isDomainError } from '@workspace-wallet/contract'
import { CoreUnavailable } from '../database/errors.ts'
import { describeFaults, findInputFaults, type InputFault } from './input-faults.ts'

/** The application's part of an error: a public code with details, or a sentence for an operator. */
export type AppError =
  /** `isOfCore`: S002 that does not concern the caller, and another core may be able to do it. */
  | { kind: 'domain'; code: ErrorCode; details: unknown; isOfCore?: true }
  | { kind: 'admin'; code: AdminErrorCode; sentence: string }

/** An error as callers receive it: tRPC's default shape without the stack, plus `appError` and `inputFaults`. */
export interface ErrorShape {
  message: string
  code: (typeof TRPC_ERROR_CODES_BY_KEY)[keyof typeof TRPC_ERROR_CODES_BY_KEY]
  data: {
    code: TRPCError['code']
    httpStatus: number
    path: string | undefined
    appError: AppError | undefined
    /** What is wrong with the input, if the schema of the procedure rejects it. */
    inputFaults: InputFault[] | undefined
  }
}

/** The response of `/batch` and `/trpc` to a call that failed. */
export function errorShape(error: TRPCError, path: string | undefined): ErrorShape {
  const inputFaults = findInputFaults(error)
  return {
    message: inputFaults ? describeFaults(inputFaults, path) : error.message,
    code: TRPC_ERROR_CODES_BY_KEY[error.code],
    data: {
      code: error.code,
      httpStatus: getHTTPStatusCodeFromError(error),
      path,
      appError: toAppError(error.cause),
      inputFaults,
    },
  }
}

export function toAppError(cause: unknown): AppError | undefined {
  if (cause instanceof CoreUnavailable)
    return { kind: 'domain', code: cause.code, details: cause.details, isOfCore: true }
  if (isDomainError(cause)) return { kind: 'domain', code: cause.code, details: cause.details }
  if (cause instanceof AdminError) return { kind: 'admin', code: cause.code, sentence: cause.message }
  return undefined
}
