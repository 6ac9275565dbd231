import type { TRPCError } from '@trpc/server'
import { shortened } from '@workspace-wallet/runtime'
import { exemplarOf, type Span } from '@workspace-wallet/runtime/tracing'
import { nameOfToken } from '../places/places.ts'
import { endCallSpan } from './call-span.ts'
import type { Context } from './context.ts'
import type { Meta } from './init.ts'

export type Call = {
  path: string
  requestId: string | undefined
  startedAt: number
  logLevel: Meta['logLevel'] | undefined
  span?: Span | undefined
}

const slowMs = 1_000

/** Logs and counts the response to a call, and ends its span. `code` is `ok` or the code of the error. */
export function recordAnswer({ core, token }: Context, call: Call, code: string): void {
  const { path, requestId, startedAt, logLevel = 'info', span } = call
  const caller = nameOfToken(token)
  const milliseconds = performance.now() - startedAt
  core.metrics.answered(path, code, milliseconds, exemplarOf(span))
  endCallSpan(span, code)
  if (isMisuse(code)) {
    const fields = { requestId, path, code, caller }
    const message = 'a call was rejected: its token must not make it, or its input is invalid'
    // A token must not take the place of others' lines by calling every procedure.
    core.sampledLog.write(`${caller} ${code}`, {
      level: 'warn',
      fields,
      message,
      summary: `more: ${message}`,
    })
    return
  }
  const isSlow = milliseconds >= slowMs
  const level = isSlow ? 'warn' : code === 'ok' ? logLevel : 'info'
  if (!core.log.isLevelEnabled(level)) return
  const line = { requestId, path, code, milliseconds: Math.round(milliseconds * 100) / 100, caller }
  if (isSlow) {
    const message = 'a call was slow'
    core.sampledLog.write(`slow ${caller} ${path}`, {
      level: 'warn',
      fields: line,
      message,
      summary: `more: ${message}`,
    })
  } else core.log[level](line, 'a call was answered')
}

/** Logs and counts a call that failed because there is no such procedure, for which no middleware runs. */
export function recordUnknown({ core, token }: Context, path: string, error: TRPCError): void {
  // The messages of tRPC for both ways to call. What procedures do not find has others.
  if (error.code !== 'NOT_FOUND' || !/^No .*procedure/.test(error.message)) return
  const { code } = error
  const caller = nameOfToken(token)
  core.metrics.answered('unknown', code, 0)
  const message = 'a call was rejected: there is no such procedure'
  core.sampledLog.write(`${caller} ${code}`, {
    level: 'warn',
    fields: { path: shortened(path, 64), code, caller },
    message,
    summary: `more: ${message}`,
  })
}

/** Programs that are in order cause none of these. Whoever has a token can cause any number, at no cost. */
function isMisuse(code: string): boolean {
  return code === 'FORBIDDEN' || code === 'BAD_REQUEST'
}

/** The request ID in the input of a call, if the caller gave one. */
export function requestIdOf(input: unknown): string | undefined {
  const { caller } = (input ?? {}) as { caller?: { requestId?: unknown } }
  const requestId = caller?.requestId
  if (typeof requestId !== 'string' || requestId === '' || requestId.includes('\u0000')) return undefined
  return requestId.slice(0, 64).toWellFormed()
}
