import { Agent } from 'node:http'
import { Socket } from 'node:net'
import { DomainError } from '@workspace-wallet/contract'
import type { Readiness, SampledLog } from '@workspace-wallet/runtime'
import { createMetricsReader } from '@workspace-wallet/runtime/metrics-reader'
import express, { type Express, type RequestHandler } from 'express'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { mintRequestId, sendFailure } from '../http/envelope.ts'
import { type CoreUrls, noteNoAnswer } from './core-urls.ts'
import type { GatewayMetrics } from './metrics.ts'

export type InternalOptions = {
  cores: CoreUrls
  readiness: () => Promise<Readiness>
  metrics: GatewayMetrics
  sampled: SampledLog
  /** The pages for operators, if they are served. */
  console: RequestHandler | undefined
}

/** How long an event stream may be silent. */
const proxyTimeoutMs = 60_000
/**
 * Headers that are about one connection only (section 7.6.1 of RFC 9110), and are not passed on. Node throws at a `Trailer` without
 * chunks, where nobody can catch it.
 */
const connectionHeaders = ['connection', 'keep-alive', 'proxy-connection', 'te', 'trailer', 'upgrade']
/** Headers of callers that are not passed on either. The gateway itself has answered `Expect`. Callers cannot set the others. */
const ownHeaders = [
  ...connectionHeaders,
  'expect',
  'proxy-authorization',
  'forwarded',
  'x-forwarded-for',
  'x-forwarded-host',
  'x-forwarded-port',
  'x-forwarded-proto',
  'x-real-ip',
]

/**
 * The application of the internal listener, for operators and internal callers: health, metrics, the console, and a proxy to
 * core. The listener is bound to loopback by default. The proxy adds no rights: callers send their own service token.
 */
export function createInternalApp({ cores, readiness, metrics, sampled, console }: InternalOptions): Express {
  const app = express()
  app.disable('x-powered-by').disable('etag').set('query parser', false)

  app.use((request, _response, next) => {
    request.once('tooManyPieces', () => request.destroy())
    next()
  })
  app.get('/healthz', (_request, response) => void response.json({ status: 'ok' }))
  app.get('/readyz', async (_request, response) => {
    const found = await readiness()
    response.status(found.status === 'ready' ? 200 : 503).json(found)
  })
  const readMetrics = createMetricsReader(metrics.registry)
  app.get('/metrics', async (request, response) => {
    const { bytes, type } = await readMetrics(request.headers.accept)
    response.type(type).send(bytes)
  })
  if (console) app.use(console)
  app.use(replaceHeaders, coreProxy(cores, sampled))
  app.use((request, response) => sendFailure(request, response, mintRequestId(), new DomainError('S004')))
  return app
}

const replaceHeaders: RequestHandler = ({ headers, socket }, _response, next) => {
  const own = {
    ...(/\bclose\b/i.test(headers.connection ?? '') && { connection: 'close' }),
    'x-forwarded-for': socket.remoteAddress ?? '',
    'x-forwarded-host': headers.host ?? '',
    'x-forwarded-proto': 'http',
  }
  for (const name of ownHeaders) delete headers[name]
  Object.assign(headers, own)
  next()
}

/** Streams calls, including event streams, to the cores in turn. */
function coreProxy(cores: CoreUrls, sampled: SampledLog) {
  return createProxyMiddleware({
    target: cores.next(),
    router: () => cores.next(),
    pathFilter: ['/trpc', '/batch'],
    agent: new Agent({ keepAlive: true }),
    proxyTimeout: proxyTimeoutMs,
    xfwd: false,
    on: {
      // Node also throws at a status below 100, and at control characters in the reason.
      proxyRes(answer) {
        for (const name of connectionHeaders) delete answer.headers[name]
        answer.statusMessage = ''
        if (answer.statusCode! < 200 || answer.statusCode! > 999) answer.statusCode = 502
      },
      error(error, request, response, target) {
        const wasSent = noteNoAnswer(cores, sampled, String(target), error)
        if (response instanceof Socket || response.headersSent) {
          response.destroy()
          return
        }
        // 503 guarantees that the call was not executed.
        const failure = wasSent ? new DomainError('S003') : new DomainError('S002', { retryAfterSeconds: 1 })
        sendFailure(request, response, mintRequestId(), failure)
      },
    },
  })
}
