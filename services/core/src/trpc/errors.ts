import { getTRPCErrorFromUnknown, TRPCError } from '@trpc/server'
import { AdminError, DomainError, type ErrorCode, errorTable, isDomainError } from '@workspace-wallet/contract'
import type { Log, SampledLog } from '@workspace-wallet/runtime'
import { CoreUnavailable, classifyDatabaseError } from '../database/errors.ts'
import { VerificationOutOfMemory } from '../integrity/verify/thread.ts'
import { toAppError } from './error-shape.ts'

/** The code for logs and metrics. */
export function codeOf(error: TRPCError): string {
  return toAppError(error.cause)?.code ?? error.code
}

/** Maps everything that a procedure throws to what the caller receives, and logs the failures of core or the database. */
export function toTRPCError(
  thrown: unknown,
  core: { log: Log; sampledLog: SampledLog },
  call: { path: string; requestId: string | undefined },
): TRPCError {
  const error = getTRPCErrorFromUnknown(thrown)
  const { cause } = error
  if (isDomainError(cause)) return domainError(cause)
  if (cause instanceof AdminError)
    return new TRPCError({ code: cause.code === 'NOT_FOUND' ? 'NOT_FOUND' : 'CONFLICT', message: cause.message, cause })
  if (error.code !== 'INTERNAL_SERVER_ERROR') return error
  if (cause instanceof VerificationOutOfMemory) {
    core.log.error({ err: cause, ...call }, 'a verification ran out of memory')
    return new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: cause.message, cause })
  }
  const fault = cause ? classifyDatabaseError(cause) : 'other'
  // Another transaction created the same row first. A retry finds it and gets an error that names it.
  if (fault === 'duplicate')
    return toTRPCError(
      new AdminError('ALREADY_EXISTS', 'Another caller has just created the same: list what exists before you retry.'),
      core,
      call,
    )
  if (fault !== 'other') {
    const message = 'the database is unavailable'
    const fields = { err: cause, ...call }
    core.sampledLog.write(`unavailable ${call.path}`, { level: 'warn', fields, message })
    const isOfCore = fault === 'unavailable'
    return domainError(isOfCore ? new CoreUnavailable() : new DomainError('S002', { retryAfterSeconds: 1 }))
  }
  core.log.error({ err: cause ?? error, ...call }, 'a procedure failed')
  return new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: 'internal error: see the log of core' })
}

function domainError(cause: DomainError): TRPCError {
  return new TRPCError({ code: trpcCodeByStatus[errorTable[cause.code].http], message: cause.message, cause })
}

const trpcCodeByStatus = {
  400: 'BAD_REQUEST',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  422: 'UNPROCESSABLE_CONTENT',
  429: 'TOO_MANY_REQUESTS',
  500: 'INTERNAL_SERVER_ERROR',
  503: 'SERVICE_UNAVAILABLE',
  504: 'GATEWAY_TIMEOUT',
} as const satisfies Record<(typeof errorTable)[ErrorCode]['http'], TRPCError['code']>
