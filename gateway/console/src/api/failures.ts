import { isTRPCClientError } from '@trpc/client'
import { DomainError, isErrorCode } from '@workspace-wallet/contract'
import type { AppRouter } from '@workspace-wallet/core-client'
import { localize } from '@workspace-wallet/gateway/locales'
import type { Catalogue } from '../locales/catalogue.ts'
import { CallFailed } from './client.ts'

/** Why a call failed, in words for the operator. */
export type Failure = {
  /** `token`: core does not know the token. `role`: the token may not make the call. */
  kind: 'token' | 'role' | 'refused' | 'unreachable' | 'unknown'
  message: string
  /** The code of the public API, if it has one. */
  code: string | null
  /** What to look for in the logs; null if no call was made. */
  requestId: string | null
}

export function failureOf(error: unknown, text: Catalogue): Failure {
  const requestId = error instanceof CallFailed ? error.requestId : null
  const cause = error instanceof CallFailed ? error.cause : error
  return { code: null, requestId, ...explain(cause, text) }
}

function explain(cause: unknown, text: Catalogue): Pick<Failure, 'kind' | 'message'> & { code?: string } {
  const { failures } = text
  if (!isTRPCClientError<AppRouter>(cause)) return { kind: 'unknown', message: String(cause) }
  const { data } = cause
  // The gateway answers in the envelope of the public API if core does not, and the browser if the gateway does not.
  if (!data) {
    const response = cause.meta?.response as Response | undefined
    // A stream that ended before its result: what core did until then is unknown.
    const isUnknown = response?.status === 504 || cause.cause?.name === 'CoreUnreachable'
    return { kind: 'unreachable', message: isUnknown ? failures.outcomeUnknown : failures.unreachable }
  }
  if (data.code === 'UNAUTHORIZED') return { kind: 'token', message: failures.unknownToken }
  if (data.code === 'FORBIDDEN' && !data.appError) return { kind: 'role', message: failures.role(cause.message) }
  const { appError, inputFaults } = data
  if (appError?.kind === 'admin') return { kind: 'refused', message: appError.sentence }
  if (appError && isErrorCode(appError.code)) {
    const error = DomainError.fromDetails(appError.code, appError.details)
    return { kind: 'refused', code: error.code, message: localize(error, text.gateway) }
  }
  if (inputFaults)
    return { kind: 'refused', message: inputFaults.map(({ path, message }) => `${path} ${message}`).join('; ') }
  return { kind: 'unknown', message: cause.message }
}
