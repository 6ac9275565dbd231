import { errorTable, isErrorCode, isId } from '@workspace-wallet/contract'
import { endSpan, isTracing, remoteParentOf, type Span, SpanKind, startSpan } from '@workspace-wallet/runtime/tracing'
import type { Context } from './context.ts'
import type { Callers } from './init.ts'

/**
 * The span of a call, in the trace of its caller. Without a caller's trace, it begins one, unless a gateway or a courier makes the
 * call for itself: they do so several times a second.
 *
 * @param rawInput not parsed yet
 */
export function startCallSpan(
  { token: { role }, traceparent }: Context,
  { scope }: Callers,
  { path, requestId, rawInput }: { path: string; requestId: string; rawInput: unknown },
): Span | undefined {
  if (!isTracing()) return undefined
  const caller = remoteParentOf(traceparent)
  if (!caller && scope === null && (role === 'gateway' || role === 'courier')) return undefined
  const { workspaceId } = (scope === null ? {} : (rawInput ?? {})) as { workspaceId?: unknown }
  return startSpan(path, {
    kind: SpanKind.SERVER,
    parent: caller?.context,
    attributes: {
      'rpc.system.name': 'trpc',
      'rpc.method': path,
      ...(plainPattern.test(requestId) && { 'wallet.request.id': requestId }),
      ...(typeof workspaceId === 'string' && isId('workspace', workspaceId) && { 'wallet.workspace.id': workspaceId }),
    },
  })
}

/** Services choose the request IDs of their calls. */
const plainPattern = /^[\w.:-]{1,64}$/

/** @param code `ok` or the code of the error */
export function endCallSpan(span: Span | undefined, code: string): void {
  if (!span) return
  const isFault = isErrorCode(code) ? errorTable[code].http >= 500 : code === 'INTERNAL_SERVER_ERROR'
  endSpan(span, code === 'ok' ? null : code, isFault)
}
