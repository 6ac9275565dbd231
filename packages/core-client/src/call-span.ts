import type { Span } from '@opentelemetry/api'
import { activeSpan, endSpan, failureOf, SpanKind, startSpan } from '@workspace-wallet/runtime/tracing'

/** The span of a call, if its caller is traced. Calls that a program makes for itself have none. */
export function startCallSpan(path: string): Span | undefined {
  if (!activeSpan()) return undefined
  return startSpan(path, { kind: SpanKind.CLIENT, attributes: { 'rpc.system.name': 'trpc', 'rpc.method': path } })
}

/** @param cause an error, or a response of core with tRPC's error shape in `error` */
export function failCallSpan(span: Span | undefined, cause: object): void {
  if (!span) return
  const { error } = cause as {
    error?: { data?: { code?: unknown; httpStatus?: unknown; appError?: { code?: unknown } } }
  }
  const { code, httpStatus, appError } = error?.data ?? {}
  const failure = error ? failureOf({ code: appError?.code ?? code }) : failureOf(cause)
  endSpan(span, failure, !(Number(httpStatus) < 500))
}
