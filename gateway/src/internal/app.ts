import { Agent } from 'node:http'
import { Socket } from 'node:net'
import { DomainError } from '@workspace-wallet/contract'
import { wasNeverSent } from '@workspace-wallet/core-client'
import type { Readiness, SampledLog } from '@workspace-wallet/runtime'
import { createMetricsReader } from '@workspace-wallet/runtime/metrics-reader'
import express, { type Express, type RequestHandler } from 'express'
import { createProxyMiddleware } from 'http-proxy-middleware'
import { mintRequestId, sendFailure } from '../http/envelope.ts'
import type { GatewayMetrics } from './metrics.ts'

export type InternalOptions = {
  coreUrls: string[]
  readiness: () => Promise<Readiness>
  metrics: GatewayMetrics
  sampled: SampledLog
  /** The pages for operators, if they are served. */
  console: RequestHandler | undefined
}

/** How long an event stream may be silent. */
const proxyTimeoutMs = 60_000
/** How often the health of a core that refused a connection is checked. Until it is healthy, it gets no calls. */
const probeMs = 500
/**
 * Headers that are not passed on. Some are about the connection of the caller only (section 7.6.1 of RFC 9110): Node throws at a
 * `Trailer` without chunks, where nobody can catch it. The gateway itself has answered `Expect`. Callers cannot set the others.
 */
const ownHeaders = [
  'connection',
  'expect',
  'keep-alive',
  'proxy-authorization',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
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
export function createInternalApp({ coreUrls, readiness, metrics, sampled, console }: InternalOptions): Express {
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
    const { text, type } = await readMetrics(request.headers.accept)
    response.type(type).send(text)
  })
  if (console) app.use(console)
  app.use(replaceHeaders, coreProxy(coreUrls, sampled))
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
function coreProxy(coreUrls: string[], sampled: SampledLog) {
  const cores = coreUrls.map(url => ({ url, isUnreachable: false }))
  let turn = 0

  function nextCore(): string {
    turn = (turn + 1) % cores.length
    const rotated = [...cores.slice(turn), ...cores.slice(0, turn)]
    return (rotated.find(core => !core.isUnreachable) ?? rotated[0]!).url
  }

  async function skipUntilHealthy(core: (typeof cores)[number]): Promise<void> {
    if (core.isUnreachable) return
    core.isUnreachable = true
    while (core.isUnreachable) {
      await new Promise(resolve => setTimeout(resolve, probeMs).unref())
      const answer = await fetch(`${core.url}/healthz`, { signal: AbortSignal.timeout(probeMs) }).catch(() => null)
      core.isUnreachable = !answer?.ok
    }
  }

  return createProxyMiddleware({
    target: coreUrls[0]!,
    router: nextCore,
    pathFilter: ['/trpc', '/batch'],
    agent: new Agent({ keepAlive: true }),
    proxyTimeout: proxyTimeoutMs,
    xfwd: false,
    on: {
      error(error, request, response, target) {
        const wasSent = !wasNeverSent(error)
        // Whoever reaches the listener can cause it, without a token.
        sampled.write('internal call', {
          level: 'warn',
          fields: { err: error, wasSent },
          message: 'core did not answer an internal call',
          summary: 'core did not answer more internal calls',
        })
        const core = cores.find(({ url }) => String(target).startsWith(url))
        if (core && !wasSent) void skipUntilHealthy(core)
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
