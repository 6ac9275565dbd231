import {
  type Context,
  context,
  propagation,
  ROOT_CONTEXT,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from '@opentelemetry/api'
import type { Attributes } from './attributes.ts'

export { type Span, SpanKind } from '@opentelemetry/api'

/** Without `startTracing`, its spans record nothing, and no span is ever active. */
const tracer = trace.getTracer('workspace-wallet')

let isStarted = false

/** Whether spans may be recorded. */
export const isTracing = () => isStarted

/** For sdk.ts, once the SDK is set up. */
export function noteStarted(): void {
  isStarted = true
}

/** A W3C `traceparent` has 55 characters. Those of later versions may have more. */
const maxTraceparentLength = 128

export type SpanOptions = {
  kind?: SpanKind
  attributes?: Attributes
  /** The caller's trace; `undefined` begins a trace. By default, the active span. */
  parent?: Context | undefined
  /** Spans that led to this one, and are not its parent. */
  linked?: readonly Span[]
  /** On the clock of `performance.now()`; now by default. */
  startedAtMs?: number
}

/** The span of the work that is in progress. Undefined without tracing. */
export function activeSpan(): Span | undefined {
  return isStarted ? trace.getActiveSpan() : undefined
}

/** Starts a span. The caller ends it with `endSpan`. */
export function startSpan(name: string, options: SpanOptions = {}): Span {
  const { kind = SpanKind.INTERNAL, attributes = {}, linked = [], startedAtMs } = options
  const parent = 'parent' in options ? (options.parent ?? ROOT_CONTEXT) : context.active()
  const links = linked.map(span => ({ context: span.spanContext() }))
  // Of the clock that other spans use. That of `performance.now()` does not follow when the time of the machine is set.
  const time = startedAtMs !== undefined && { startTime: Date.now() - (performance.now() - startedAtMs) }
  return tracer.startSpan(name, { kind, attributes, links, ...time }, parent)
}

/**
 * @param failure why it failed; null if it did not
 * @param isFault false if nothing is wrong with the service: a caller was refused
 */
export function endSpan(span: Span, failure: string | null, isFault = true): void {
  if (failure !== null) {
    span.setAttribute('error.type', failure)
    if (isFault) span.setStatus({ code: SpanStatusCode.ERROR })
  }
  span.end()
}

export function addAttributes(span: Span | undefined, attributes: Attributes): void {
  span?.setAttributes(attributes)
}

/** Runs something, and what it starts, with this active span. Undefined: with none. */
export function runWithSpan<Result>(span: Span | undefined, run: () => Result): Result {
  return context.with(span ? trace.setSpan(ROOT_CONTEXT, span) : ROOT_CONTEXT, run)
}

/** Runs something as a span of the active one. Without one that is recorded, there is no span. */
export async function withSpan<Result>(
  name: string,
  options: Omit<SpanOptions, 'parent'>,
  run: () => Promise<Result>,
): Promise<Result> {
  if (!activeSpan()?.isRecording()) return run()
  return runAndEnd(startSpan(name, options), run)
}

/**
 * Runs something that several callers share. Its span is a child of the first one that is recorded, and linked with the others, in
 * both directions. If none is recorded, there is no span: what is shared is sampled with its callers.
 *
 * @param callers the active spans of those who wait for it
 */
export async function withSharedSpan<Result>(
  name: string,
  { callers, ...options }: Omit<SpanOptions, 'parent' | 'linked'> & { callers: readonly (Span | undefined)[] },
  run: () => Promise<Result>,
): Promise<Result> {
  const [first, ...linked] = callers.filter(span => span !== undefined).filter(span => span.isRecording())
  if (!first) return runWithSpan(undefined, run)
  const span = startSpan(name, { ...options, linked, parent: trace.setSpan(ROOT_CONTEXT, first) })
  for (const other of linked) other.addLink({ context: span.spanContext() })
  return runAndEnd(span, run)
}

async function runAndEnd<Result>(span: Span, run: () => Promise<Result>): Promise<Result> {
  try {
    const result = await runWithSpan(span, run)
    endSpan(span, null)
    return result
  } catch (error) {
    endSpan(span, failureOf(error))
    throw error
  }
}

/** The code of an error, such as ECONNREFUSED or an SQLSTATE, or else its class. Never its message, which may contain data. */
export function failureOf(error: unknown): string {
  const { code } = (error ?? {}) as { code?: unknown }
  if (typeof code === 'string' && /^\w{1,64}$/.test(code)) return code
  return error instanceof Error ? error.constructor.name : '_OTHER'
}

/** The W3C `traceparent` for what this span calls; undefined without tracing. */
export function traceparentOf(span: Span | undefined): string | undefined {
  if (!span) return undefined
  const carrier: { traceparent?: string } = {}
  propagation.inject(trace.setSpan(ROOT_CONTEXT, span), carrier)
  return carrier.traceparent
}

/** The caller's trace. `isSampled`: whether the caller wants it to be recorded. `tracestate` is not passed on. */
export type RemoteParent = { context: Context; span: Span; isSampled: boolean }

/** The trace that a W3C `traceparent` names; undefined if it is malformed, and without tracing. */
export function remoteParentOf(traceparent: unknown): RemoteParent | undefined {
  if (!isStarted || typeof traceparent !== 'string' || traceparent.length > maxTraceparentLength) return undefined
  const found = propagation.extract(ROOT_CONTEXT, { traceparent })
  const span = trace.getSpan(found)
  return span && { context: found, span, isSampled: isSampled(span) }
}

/** The labels of an exemplar, which leads from a histogram to a trace. */
export type Exemplar = { trace_id: string; span_id: string }

/** Undefined if this span is not recorded. */
export function exemplarOf(span: Span | undefined): Exemplar | undefined {
  if (!span || !isSampled(span)) return undefined
  const { traceId, spanId } = span.spanContext()
  return { trace_id: traceId, span_id: spanId }
}

function isSampled(span: Span): boolean {
  return (span.spanContext().traceFlags & 1) === 1
}
