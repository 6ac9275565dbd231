import type { IncomingMessage } from 'node:http'
import { DomainError, type ErrorCode, errorTable, scopes } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import express, { type ErrorRequestHandler, type Express, type RequestHandler } from 'express'
import type { Endpoint } from '../api/endpoint.ts'
import { endpoints, noSuchEndpoint } from '../api/endpoints.ts'
import { checkScope } from '../auth/address-and-scope.ts'
import { addressOf, authenticate, type PipelineDependencies, type SignedRequest } from '../auth/pipeline.ts'
import { parseRequestTarget, type RequestTarget } from '../auth/request-target.ts'
import { toDomainError } from '../core/domain-errors.ts'
import { isDenial } from '../observability/denials.ts'
import type { Readiness } from '../observability/readiness.ts'
import { mintRequestId, sendFailure, sendSuccess } from './envelope.ts'

declare module 'http' {
  interface IncomingMessage {
    /** Set on arrival. */
    requestId: string
    /** On the clock of `performance.now()`. */
    arrivedAt: number
    target: RequestTarget
    /** The key that X-Api-Key names, once it is known that there is one. */
    apiKey: string | undefined
    /** Set by the pipeline, once the request has passed it. Endpoints run after that. */
    signed: SignedRequest
  }
}

/** Counts an answer of the public API. `route` is the endpoint's path, with its parameters' names. */
export type RequestMetrics = { answered: (route: string, code: ErrorCode | '2000', milliseconds: number) => void }

/** The public application. Whatever happens under /api/, the answer is our envelope. */
export function createApp(
  dependencies: PipelineDependencies,
  core: CoreClient,
  metrics: RequestMetrics,
  readiness: () => Promise<Readiness>,
): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag').set('query parser', false)
  app.enable('case sensitive routing').enable('strict routing')

  app.use(arrive)
  app.get('/healthz', (request, response) => sendSuccess(response, request.requestId, { status: 'ok' }))
  app.get('/readyz', answerReadiness(readiness))
  app.use(onlyApi)
  app.use(signedBy(dependencies)) // section 5.3, steps 1 to 7
  app.use(plainPath)
  const answered = recordOf(dependencies, metrics)
  for (const endpoint of endpoints) mount(app, endpoint, core, answered) // step 8, then the endpoint
  app.use(deny)
  app.use(failure(dependencies, answered))
  app.use(lastResort(dependencies))
  return app
}

/** Told of each answer that was sent. `route` is the endpoint's path, with the names of its parameters. */
type Answered = (request: IncomingMessage, route: string, code: ErrorCode | '2000') => void

/**
 * One line in the log and one count in the metrics for each request, under the id that its client got. At the usual
 * level, denied requests and those without a valid signature are sampled instead (see denials.ts).
 */
function recordOf(dependencies: PipelineDependencies, metrics: RequestMetrics): Answered {
  return (request, route, code) => {
    const milliseconds = performance.now() - request.arrivedAt
    metrics.answered(route, code, milliseconds)
    const isOurFault = code !== '2000' && errorTable[code].http >= 500
    const isSampled = code !== '2000' && (isDenial(code) || !request.signed)
    const level = isSampled ? 'debug' : isOurFault ? 'warn' : 'info'
    if (!dependencies.log.isLevelEnabled(level)) return
    const { requestId, method, apiKey } = request
    const address = request.signed?.address ?? addressOf(dependencies, request)
    const line = { requestId, method, route, code, milliseconds: Math.round(milliseconds * 100) / 100, address, apiKey }
    dependencies.log[level](line, isOurFault ? 'a request was not served' : 'a request was answered')
  }
}

const arrive: RequestHandler = (request, _response, next) => {
  request.requestId = mintRequestId()
  request.arrivedAt = performance.now()
  request.target = parseRequestTarget(request.originalUrl)
  if (request.headers.host === undefined && request.httpVersion === '1.1')
    throw new DomainError('S012', { field: 'Host', reason: 'REQUIRED' })
  // Of an absolute-form target the router sees the path too.
  request.url = request.target.path
  next()
}

/** The public listener does not say which part is missing: that is for operators, on the internal one. */
function answerReadiness(readiness: () => Promise<Readiness>): RequestHandler {
  return async (request, response) => {
    if ((await readiness()).status !== 'ready') throw new DomainError('S002', { retryAfterSeconds: 1 })
    sendSuccess(response, request.requestId, { status: 'ready' })
  }
}

const onlyApi: RequestHandler = (request, _response, next) => {
  if (!request.target.path.startsWith('/api/')) throw new DomainError('S004')
  next()
}

function signedBy(dependencies: PipelineDependencies): RequestHandler {
  return async (request, response, next) => {
    request.signed = await authenticate(dependencies, request, response)
    next()
  }
}

/** What was signed is what is routed: no path that another reader could take for one of ours. */
const plainPath: RequestHandler = (request, _response, next) => {
  const { path } = request.target
  if (!plainPathPattern.test(path) || /%2f|%5c/i.test(path)) throw noSuchEndpoint(request.method, path)
  next()
}
const plainPathPattern = /^(?:\/(?:[A-Za-z0-9._~:@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+)+$/

/** @throws when the endpoint declares no scope: then the program does not start (section 5.4) */
export function mount(app: Express, endpoint: Endpoint, core: CoreClient, answered: Answered): void {
  const { method, path, scope, handle } = endpoint
  if (!scopes.includes(scope)) throw new Error(`${method} ${path} declares no scope`)
  const handler: RequestHandler = async (request, response, next) => {
    // Express would answer HEAD with the handler of GET.
    if (request.method !== method) return next()
    const { key, address, body } = request.signed
    checkScope(key, scope)
    const { requestId } = request
    const on = { workspaceId: key.workspaceId, caller: { apiKey: key.apiKey, requestId, address } }
    const params = request.params as Record<string, string>
    const { query } = request.target
    sendSuccess(response, requestId, await handle({ core, on, params, query, request, body }))
    answered(request, path, '2000')
  }
  if (method === 'GET') app.get(path, handler)
  else app.post(path, handler)
}

const deny: RequestHandler = request => {
  throw noSuchEndpoint(request.method, request.target.path)
}

function failure(dependencies: PipelineDependencies, answered: Answered): ErrorRequestHandler {
  const { log, sampled, denials } = dependencies
  return (cause, request, response, _next) => {
    if (response.headersSent) {
      response.destroy()
      return
    }
    let error = isUndecodablePath(cause) ? noSuchEndpoint('', '') : toDomainError(cause)
    if (!error) {
      const fields = { err: cause, unknownCode: unknownCodeOf(cause), requestId: request.requestId }
      const message = 'a request failed'
      if (request.signed) log.error(fields, message)
      else sampled.write('failure', { level: 'error', fields, message, summary: 'more requests failed' })
      error = new DomainError('S001')
    }
    sendFailure(request, response, request.requestId, error)
    const { apiKey, requestId } = request
    const refusal = { code: error.code, apiKey, address: addressOf(dependencies, request), requestId }
    denials.note(refusal, request.signed !== undefined)
    // What no endpoint declares has no name of its own: paths are the client's, and without end.
    const route = request.route?.path ?? 'none'
    answered(request, String(route), error.code)
  }
}

/** Whether the router could not decode a path parameter. */
function isUndecodablePath(cause: unknown): boolean {
  return cause instanceof URIError || (cause as { status?: unknown } | null)?.status === 400
}

/** The code of a core that is newer than this gateway, and answers what this one does not know. */
function unknownCodeOf(cause: unknown): unknown {
  return (cause as { data?: { appError?: { code?: unknown } } } | null)?.data?.appError?.code
}

/** When an error cannot even be answered, that is a bug too: its client gets our envelope, not Express' page. */
function lastResort({ log }: PipelineDependencies): ErrorRequestHandler {
  return (cause, request, response, _next) => {
    log.error({ err: cause, requestId: request.requestId }, 'an error could not be answered')
    if (response.headersSent) response.destroy()
    else sendFailure(request, response, request.requestId, new DomainError('S001'))
  }
}
