import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { ConfigurationError, DomainError } from '@workspace-wallet/core/contract'
import { createApp } from './app.ts'
import { type GatewayConfig, gatewayConfig } from './config.ts'
import { openCore } from './core.ts'
import { failureBody } from './envelope.ts'
import { createInternalApp } from './internal.ts'
import { KeyDirectory } from './keys/directory.ts'
import { createLog } from './log.ts'
import { createMetrics } from './metrics.ts'
import { openFileNonces } from './nonces/file.ts'
import { openRedisNonces } from './nonces/redis.ts'

const drainDeadlineMs = 9_000

/** The gateway, as a program: `node gateway/src/main.ts`. */
async function main(config: GatewayConfig): Promise<void> {
  const log = createLog(config.LOG_LEVEL)
  const core = openCore(config.CORE_URL, config.CORE_TOKEN)
  const keys = new KeyDirectory(core, config.KEY_ENCRYPTION_KEYS, log)
  const nonces = config.REDIS_URL ? openRedisNonces(config.REDIS_URL, log) : await openFileNonces(config.NONCE_FILE!)
  let draining = false

  const metrics = createMetrics()
  const isReady = async () => !draining && keys.isCurrent && (await nonces.isReachable())
  const app = createApp(
    {
      keys,
      nonces,
      bodyLimitBytes: config.BODY_LIMIT_BYTES,
      trustedProxies: config.TRUSTED_PROXIES,
      now: Date.now,
      log,
    },
    core,
    metrics,
    isReady,
  )
  const server = createServer(
    {
      keepAliveTimeout: 65_000,
      headersTimeout: 10_000,
      requestTimeout: 20_000,
      connectionsCheckingInterval: 1_000,
      // Node would refuse a request without Host by itself, without our envelope.
      requireHostHeader: false,
    },
    app,
  )
  server.on('clientError', answerMalformed)
  server.on('connect', (_request, socket) => answerMalformed({ name: 'connect', message: 'CONNECT' }, socket))
  // An Expect header that Node does not know is ours to answer, as any other request.
  server.on('checkExpectation', app)
  const internal = createServer(createInternalApp({ coreUrls: config.CORE_URL, isReady, metrics, log }))
  keys.start()
  internal.listen(config.INTERNAL_PORT, config.INTERNAL_HOST)
  await once(internal, 'listening')
  server.listen(config.GATEWAY_PORT, config.GATEWAY_HOST)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const { port: internalPort } = internal.address() as AddressInfo
  log.info({ port, internalPort }, 'the gateway listens')
  process.send?.({ type: 'ready', port, internalPort })

  async function stop(reason: string): Promise<void> {
    if (draining) return
    draining = true
    log.info({ reason }, 'the gateway stops: answering what it has taken')
    setTimeout(() => process.exit(1), drainDeadlineMs).unref()
    const closed = once(server, 'close')
    server.close()
    server.closeIdleConnections()
    await closed
    // Last, so that the end can be watched.
    internal.close()
    internal.closeAllConnections()
    keys.close()
    await Promise.all([nonces.close(), core.close()])
    log.info('the gateway has stopped')
    process.exit(0)
  }
  process.once('SIGTERM', () => stop('SIGTERM'))
  process.once('SIGINT', () => stop('SIGINT'))
  process.once('disconnect', () => stop('the supervisor has gone'))
}

/** What is not even HTTP never reaches the application: its answer is written by hand, in our envelope. */
function answerMalformed(error: NodeJS.ErrnoException, socket: import('node:stream').Duplex): void {
  if (error.code === 'ECONNRESET' || !socket.writable) {
    socket.destroy()
    return
  }
  const reason = error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'TOO_SLOW' : 'BAD_CHARACTER'
  const body = failureBody(new DomainError('S012', { field: 'request', reason }))
  socket.end(
    'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\nCache-Control: no-store\r\n' +
      `Connection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`,
  )
}

try {
  await main(gatewayConfig())
} catch (error) {
  if (error instanceof ConfigurationError) for (const fault of error.faults) console.error(fault)
  else console.error(`the gateway cannot start: ${error instanceof Error ? error.message : error}`)
  process.exit(1)
}
