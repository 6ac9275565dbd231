import { type IncomingMessage, METHODS } from 'node:http'
import { type ErrorCode, errorTable } from '@workspace-wallet/contract'
import {
  endSpan,
  isTracing,
  remoteParentOf,
  runWithSpan,
  type Span,
  SpanKind,
  startSpan,
} from '@workspace-wallet/runtime/tracing'
import { Buckets } from '../auth/limits/buckets.ts'

/**
 * The spans of requests. A request gets one when it has passed the pipeline, so that nobody can fill the collector without an API
 * key. It begins when the request arrived.
 */
export class RequestSpans {
  readonly #sampledParents: Buckets | undefined

  /** @param parentsPerSecond requests of one workspace that are recorded because their `traceparent` says so */
  constructor(parentsPerSecond: number) {
    if (parentsPerSecond === 0) return
    this.#sampledParents = new Buckets({ intervalMicros: Math.ceil(1e6 / parentsPerSecond), burst: parentsPerSecond })
  }

  /** Starts the span of an authenticated request, and runs what handles the request with it. */
  run(request: IncomingMessage, handle: () => void): void {
    if (!isTracing()) {
      handle()
      return
    }
    request.span = this.#start(request)
    runWithSpan(request.span, handle)
  }

  #start({ method = '', headers, signed, requestId, arrivedAtMs }: IncomingMessage): Span {
    const { workspaceId } = signed.key
    const parent = remoteParentOf(headers.traceparent)
    // Above the limit, the request begins a trace of its own, with a link. The client could choose trace IDs that are always sampled.
    const isContinued = parent && (!parent.isSampled || this.#mayBeSampled(workspaceId))
    const span = startSpan(nameOf(method), {
      kind: SpanKind.SERVER,
      parent: isContinued ? parent.context : undefined,
      linked: parent && !isContinued ? [parent.span] : [],
      startedAtMs: arrivedAtMs,
      attributes: {
        'http.request.method': nameOf(method),
        'wallet.request.id': requestId,
        'wallet.workspace.id': workspaceId,
      },
    })
    const authenticating = runWithSpan(span, () => startSpan('authenticate', { startedAtMs: arrivedAtMs }))
    endSpan(authenticating, null)
    return span
  }

  #mayBeSampled(workspaceId: string): boolean {
    return this.#sampledParents?.take(workspaceId, performance.now()).waitMs === 0
  }
}

/** Clients can invent any number of methods. */
function nameOf(method: string): string {
  return METHODS.includes(method) ? method : '_OTHER'
}

/** @param route the path of the endpoint, with the names of its parameters */
export function endRequestSpan({ span, method = '' }: IncomingMessage, route: string, code: ErrorCode | '2000'): void {
  if (!span) return
  const status = code === '2000' ? 200 : errorTable[code].http
  span.updateName(`${nameOf(method)} ${route}`)
  span.setAttributes({ 'http.route': route, 'http.response.status_code': status })
  endSpan(span, code === '2000' ? null : code, status >= 500)
}
