import { shortened } from '@workspace-wallet/runtime'
import { exemplarOf, type Span } from '@workspace-wallet/runtime/tracing'
import { nameOfToken } from '../places/places.ts'
import { endCallSpan } from './call-span.ts'
import type { Context, Core } from './context.ts'
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
  const milliseconds = performance.now() - startedAt
  core.metrics.answered(path, code, milliseconds, exemplarOf(span))
  endCallSpan(span, code)
  if (isMisuse(code)) {
    const caller = nameOfToken(token)
    const message = 'a call was rejected: its token must not make it, or its input is invalid'
    // A token must not take the place of others' lines by calling every procedure.
    warnSampled(core, `${caller} ${code}`, { requestId, path, code, caller }, message)
    return
  }
  const isSlow = milliseconds >= slowMs
  const level = isSlow ? 'warn' : code === 'ok' ? logLevel : 'info'
  if (!core.log.isLevelEnabled(level)) return
  const caller = nameOfToken(token)
  const line = { requestId, path, code, milliseconds: Math.round(milliseconds * 100) / 100, caller }
  if (isSlow) warnSampled(core, `slow ${caller} ${path}`, line, 'a call was slow')
  else core.log[level](line, 'a call was answered')
}

/**
 * Logs and counts a call, a request or a batch that is rejected before a procedure is chosen: there is no such procedure, or not with this
 * method, or it is too large, or cannot be decoded.
 */
export function recordUnroutedCall({ core, token }: Context, { path, code }: { path: string; code: string }): void {
  const caller = nameOfToken(token)
  core.metrics.answered('unknown', code, 0)
  const fields = { path: shortened(path, 64), code, caller }
  warnSampled(core, `unrouted ${caller} ${code}`, fields, 'a call was rejected before a procedure was chosen')
}

/** Writes some of the lines of a kind. */
export function warnSampled(
  { sampledLog }: Pick<Core, 'sampledLog'>,
  kind: string,
  fields: object,
  message: string,
): void {
  sampledLog.write(kind, { level: 'warn', fields, message })
}

/** Correct programs cause none of these. Whoever has a token can cause any number, at no cost. */
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
