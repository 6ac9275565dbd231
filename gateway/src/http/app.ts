import type { IncomingMessage } from 'node:http'
import { DomainError, type ErrorCode, errorTable, isId, type Scope, scopes } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { type Readiness, Rotation } from '@workspace-wallet/runtime'
import { type Exemplar, exemplarOf, type Span } from '@workspace-wallet/runtime/tracing'
import express, { type ErrorRequestHandler, type Express, type Request, type RequestHandler } from 'express'
import type { Endpoint } from '../api/endpoint.ts'
import { bodyLimitOf, endpoints, isEndpointPath } from '../api/endpoints.ts'
import { noSuchEndpoint } from '../api/no-such-endpoint.ts'
import { checkScope } from '../auth/address-and-scope.ts'
import { authenticate, type PipelineDependencies, type SignedRequest } from '../auth/pipeline.ts'
import { parseRequestTarget, type RequestTarget } from '../auth/request-target.ts'
import { toDomainError } from '../core/domain-errors.ts'
import { locales, localize } from '../locales/localize.ts'
import { clientAddress } from '../network/client-address.ts'
import { isDenial } from '../observability/denials.ts'
import type { RefusedCall } from '../observability/refusals.ts'
import { stepOf } from '../observability/steps.ts'
import { mintRequestId, sendFailure, sendSuccess } from './envelope.ts'
import { serveReceiptKeys } from './receipt-keys.ts'
import { checkFraming } from './request-framing.ts'
import { endRequestSpan, type RequestSpans } from './request-spans.ts'
import type { ResponseMemory } from './response-memory.ts'

declare module 'http' {
  interface IncomingMessage {
    requestId: string
    /** When the request arrived, on the clock of `performance.now()`. */
    arrivedAtMs: number
    target: RequestTarget
    /** See `clientAddress` in network/client-address.ts. */
    clientAddress: string
    /** The API key, once step 1 of the pipeline has found it. */
    apiKey: string | undefined
    /** Set once the request has passed the pipeline, before an endpoint handles it. */
    signed: SignedRequest
    /** Set with `signed`, if requests are traced. */
    span: Span | undefined
  }
}

/** Counts a response of the public API. `route`: the path of the endpoint, with the names of its parameters. */
export type RequestMetrics = {
  recordAnswer: (route: string, code: ErrorCode | '2000', milliseconds: number, exemplar?: Exemplar) => void
}

/**
 * The public application. Every response under /api/ has the envelope of section 2.1.
 *
 * @param docs serves the documentation, unless the operator turned it off
 */
export function createApp(
  dependencies: PipelineDependencies & { spans: RequestSpans },
  core: CoreClient,
  responses: ResponseMemory,
  metrics: RequestMetrics,
  readiness: () => Promise<Readiness>,
  docs?: RequestHandler,
): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag').set('query parser', false)
  app.enable('case sensitive routing').enable('strict routing')

  app.use(receive(dependencies))
  app.get('/healthz', (request, response) => sendSuccess(response, request.requestId, { status: 'ok' }))
  app.get('/readyz', answerReadiness(readiness))
  app.use(serveReceiptKeys(core))
  app.use(answerOutsideApi(docs))
  app.use(authenticated(dependencies)) // section 5.3, steps 1 to 7
  app.use(requirePlainPath)
  const recordAnswer = answerRecorder(dependencies, metrics)
  const rotation = new Rotation()
  for (const endpoint of endpoints) mount(app, endpoint, { core, responses, rotation, recordAnswer }) // step 8, then the endpoint
  app.use(denyUndeclared)
  app.use(sendError(dependencies, recordAnswer))
  app.use(lastResort(dependencies))
  return app
}

/** Logs and counts a response that was sent, and ends the span of its request. */
type RecordAnswer = (request: IncomingMessage, route: string, code: ErrorCode | '2000') => void

/**
 * Writes one log line and one metric per request. At level info, denied requests and those without a valid signature are
 * sampled instead (see denials.ts).
 */
function answerRecorder({ log }: PipelineDependencies, metrics: RequestMetrics): RecordAnswer {
  return (request, route, code) => {
    const milliseconds = performance.now() - request.arrivedAtMs
    metrics.recordAnswer(route, code, milliseconds, exemplarOf(request.span))
    endRequestSpan(request, route, code)
    const isOurFault = code !== '2000' && errorTable[code].http >= 500
    const isSampled = code !== '2000' && (isDenial(code) || !request.signed)
    const level = isSampled ? 'debug' : isOurFault ? 'warn' : 'info'
    if (!log.isLevelEnabled(level)) return
    const { requestId, method, apiKey, clientAddress: address } = request
    const line = { requestId, method, route, code, milliseconds: Math.round(milliseconds * 100) / 100, address, apiKey }
    log[level](line, isOurFault ? 'a request was not served' : 'a request was answered')
  }
}

function receive({ trustedProxies }: PipelineDependencies): RequestHandler {
  return (request, response, next) => {
    const { socket, headers } = request
    request.requestId = mintRequestId()
    request.arrivedAtMs = performance.now()
    request.target = parseRequestTarget(request.originalUrl)
    const forwardedFor = headers['x-forwarded-for'] as string | undefined
    request.clientAddress = clientAddress(socket.remoteAddress ?? '', forwardedFor, trustedProxies)
    // The router also gets only the path of an absolute-form target.
    request.url = request.target.path
    // What has arrived of a body that nobody reads would be kept until the response begins, which may have to wait for core.
    if (!isOfApi(request)) request.resume()
    try {
      checkFraming(request)
    } catch (error) {
      // Nobody can tell where the next request begins.
      response.setHeader('Connection', 'close')
      throw error
    }
    next()
  }
}

/** The public listener does not name the unavailable dependency. The internal listener does, for operators. */
function answerReadiness(readiness: () => Promise<Readiness>): RequestHandler {
  return async (request, response) => {
    if ((await readiness()).status !== 'ready') throw new DomainError('S002', { retryAfterSeconds: 1 })
    sendSuccess(response, request.requestId, { status: 'ready' })
  }
}

function isOfApi({ target }: Request): boolean {
  return target.path.startsWith('/api/')
}

/** Paths that do not begin with /api/ are those of the documentation, or S004. */
function answerOutsideApi(docs: RequestHandler | undefined): RequestHandler {
  return (request, response, next) => {
    if (isOfApi(request)) return next()
    if (!docs) throw new DomainError('S004')
    return docs(request, response, error => next(error ?? new DomainError('S004', { documentation: '/docs' })))
  }
}

function authenticated(dependencies: PipelineDependencies & { spans: RequestSpans }): RequestHandler {
  return async (request, response, next) => {
    request.signed = await authenticate(dependencies, request, response, bodyLimitOf(request.target.path))
    dependencies.spans.run(request, next)
  }
}

/** Rejects paths that another program could read as a different path, so that the signed path is the routed path. */
const requirePlainPath: RequestHandler = (request, _response, next) => {
  const { path } = request.target
  if (!plainPathPattern.test(path) || /%2f|%5c/i.test(path)) throw noSuchEndpoint(request.method, path)
  next()
}
const plainPathPattern = /^(?:\/(?:[A-Za-z0-9._~:@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)+$/

type EndpointDependencies = {
  core: CoreClient
  responses: ResponseMemory
  /** The large bodies of workspaces. */
  rotation: Rotation
  recordAnswer: RecordAnswer
}

/** From this size on, a body takes about a millisecond or more. */
const largeBodyBytes = 16 * 1024

/** @throws Error if the endpoint declares no scope, so that the gateway does not start (section 5.4) */
export function mount(app: Express, endpoint: Endpoint, dependencies: EndpointDependencies): void {
  const { core, responses, rotation, recordAnswer } = dependencies
  const { method, path, scope, handle } = endpoint
  if (!scopes.includes(scope)) throw new Error(`${method} ${path} declares no scope`)
  const handler: RequestHandler = async (request, response, next) => {
    // Express would answer HEAD with the handler of GET.
    if (request.method !== method) return next()
    const { requestId, clientAddress: address } = request
    const { key, body } = request.signed
    checkScope(key, scope)
    const on = { workspaceId: key.workspaceId, caller: { apiKey: key.apiKey, requestId, address } }
    const params = request.params as Record<string, string>
    const { target, headers } = request
    const requireScope = (also: Scope, index?: number) => checkScope(key, also, index)
    if (body.length >= largeBodyBytes) await rotation.next(key.workspaceId, request.socket)
    const data = await handle({ core, on, requireScope, params, query: target.query, headers, body })
    request.signed.leave()
    const bytes = sendSuccess(response, requestId, data)
    responses.hold(response, key.workspaceId, bytes)
    recordAnswer(request, path, '2000')
  }
  if (method === 'GET') app.get(path, handler)
  else app.post(path, handler)
}

const denyUndeclared: RequestHandler = request => {
  throw noSuchEndpoint(request.method, request.target.path)
}

function sendError(dependencies: PipelineDependencies, recordAnswer: RecordAnswer): ErrorRequestHandler {
  const { log, sampled, denials, refusals } = dependencies
  return (cause, request, response, _next) => {
    request.signed?.leave()
    if (response.headersSent) {
      response.destroy()
      endRequestSpan(request, routeOf(request), 'S001')
      return
    }
    let error = isUndecodablePath(cause) ? noSuchEndpoint(request.method, request.target.path) : toDomainError(cause)
    if (!error) {
      const fields = { err: cause, unknownCode: unknownCodeOf(cause), requestId: request.requestId }
      const message = 'a request failed'
      if (request.signed) log.error(fields, message)
      else sampled.write('failure', { level: 'error', fields, message, summary: 'more requests failed' })
      error = new DomainError('S001')
    }
    sendFailure(request, response, request.requestId, error)
    const { apiKey, requestId, clientAddress: address } = request
    denials.record({ code: error.code, apiKey, address, requestId }, request.signed !== undefined)
    const route = routeOf(request)
    recordAnswer(request, route, error.code)
    refusals.record(refusedCall(request, route, error))
  }
}

/** What operators see of a refused call. The key has no other form than that of an ID, whether or not it exists. */
function refusedCall(request: IncomingMessage, route: string, error: DomainError): RefusedCall {
  const { requestId, clientAddress: address, signed, headers } = request
  const { code } = error
  const named = headers['x-api-key']
  return {
    method: request.method!,
    route,
    code,
    step: stepOf(code),
    apiKey: typeof named === 'string' && isId('apiKey', named) ? named : null,
    address,
    requestId,
    // The address is checked after the signature.
    isSigned: signed !== undefined || code === 'GA2022',
    describe: () => localize(error, locales[0]),
  }
}

/**
 * The endpoint of a failed request, also of one that failed before it was routed, if its path has no parameters. Undeclared paths
 * share one name, because clients can send any number of them.
 */
function routeOf({ route, target }: Request): string {
  return String(route?.path ?? (isEndpointPath(target.path) ? target.path : 'none'))
}

/** Whether the router could not decode a path parameter. */
function isUndecodablePath(cause: unknown): boolean {
  return cause instanceof URIError || (cause as { status?: unknown } | null)?.status === 400
}

/** The error code of a newer core, which this gateway does not know. */
function unknownCodeOf(cause: unknown): unknown {
  return (cause as { data?: { appError?: { code?: unknown } } } | null)?.data?.appError?.code
}

/** Answers with S001 if the error handler itself fails. Without it, the client would get the HTML page of Express. */
function lastResort({ log }: PipelineDependencies): ErrorRequestHandler {
  return (cause, request, response, _next) => {
    log.error({ err: cause, requestId: request.requestId }, 'the error handler failed')
    if (response.headersSent) response.destroy()
    else sendFailure(request, response, request.requestId, new DomainError('S001'))
  }
}
