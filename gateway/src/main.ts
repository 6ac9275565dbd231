import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { createCoreClient } from '@workspace-wallet/core-client'
import {
  BodyMemory,
  BodyReader,
  ConfigurationError,
  createLog,
  defaultBodyMemoryBytes,
  defaultConnectionLimit,
  endProgram,
  faultOf,
  type HealthChecks,
  InstanceReporter,
  readReadiness,
  SampledLog,
  sharedCheck,
} from '@workspace-wallet/runtime'
import { startTracing } from '@workspace-wallet/runtime/start-tracing'
import packageJson from '../package.json' with { type: 'json' }
import { KeyCache } from './auth/keys/key-cache.ts'
import { ConcurrencyLimit } from './auth/limits/concurrency-limit.ts'
import { FailureLimit } from './auth/limits/failure-limit.ts'
import { MistakeSearch } from './auth/mistake-search.ts'
import { openFileNonces } from './auth/nonces/file-store.ts'
import { generationsOf } from './auth/nonces/generations.ts'
import { openRedisNonces } from './auth/nonces/redis/store.ts'
import { bodyDeadlineMs } from './auth/raw-body.ts'
import { type GatewayConfig, gatewayConfig, limitsOf } from './config.ts'
import { answerLimits } from './core/answer-limits.ts'
import { serveDocs } from './docs/routes.ts'
import { createApp } from './http/app.ts'
import { RequestSpans } from './http/request-spans.ts'
import { ResponseMemory } from './http/response-memory.ts'
import { createGuardedServer } from './http/server.ts'
import { createInternalApp } from './internal/app.ts'
import { serveConsole } from './internal/console.ts'
import { CoreUrls } from './internal/core-urls.ts'
import { createMetrics } from './internal/metrics.ts'
import { createInternalServer } from './internal/server.ts'
import { Denials } from './observability/denials.ts'
import { Refusals } from './observability/refusals.ts'

/** When connections are closed that are not idle: also those that have not sent a request yet. */
const drainDeadlineMs = 9_000
const exitDeadlineMs = 13_000
const sweepMs = 100

/** The gateway program: `node gateway/src/main.ts`. */
async function main(config: GatewayConfig): Promise<void> {
  const { log, output } = createLog('gateway', config.LOG_LEVEL)
  const core = createCoreClient({ url: config.CORE_URL, token: config.CORE_TOKEN, answers: answerLimits })
  const keys = new KeyCache(core, config.KEY_ENCRYPTION_KEYS, log)
  const generations = generationsOf(core)
  const limits = limitsOf(config)
  const metrics = createMetrics()
  const nonces = metrics.measureNonceStore(
    config.REDIS_URL
      ? await openRedisNonces(config.REDIS_URL, generations, limits, log)
      : await openFileNonces(config.NONCE_FILE!, generations, limits, log),
  )
  const checks: HealthChecks = { core: async () => keys.fault, nonces: sharedCheck(() => nonces.fault()) }
  metrics.watchHealth(checks)
  metrics.watchLog(output)
  metrics.watchKeys(keys)
  metrics.watchCore(core)
  const sampled = new SampledLog(log)
  const memoryBytes = config.BODY_MEMORY_BYTES ?? defaultBodyMemoryBytes
  const bodies = new BodyReader({ memory: new BodyMemory(memoryBytes), deadlineMs: bodyDeadlineMs })
  const responses = new ResponseMemory(config.RESPONSE_MEMORY_BYTES ?? defaultBodyMemoryBytes)
  metrics.watchMemory(bodies, responses)
  const denials = new Denials(metrics.registry, sampled)
  const refusals = new Refusals(core, metrics.registry, log)
  const reporter = new InstanceReporter({
    version: packageJson.version,
    async health() {
      const { waiting, unhealthyCores } = core.load()
      return { fault: faultOf(await readReadiness(checks, false)), waiting, unhealthyCores }
    },
    send: report => core.instances.report.mutate(report),
    leave: instance => core.instances.leave.mutate(instance),
    log,
  })
  const { instanceId } = reporter
  const tracing = await startTracing(config, { name: 'gateway', version: packageJson.version, instanceId }, log)
  let isStopping = false
  const readiness = () => readReadiness(checks, isStopping)
  const app = createApp(
    {
      keys,
      nonces,
      mistakes: new MistakeSearch(),
      bodies,
      bodyLimitBytes: config.BODY_LIMIT_BYTES,
      concurrency: new ConcurrencyLimit(config.MAX_REQUESTS),
      trustedProxies: config.TRUSTED_PROXIES,
      keyRate: limits.key,
      failures: limits.failures && new FailureLimit(limits.failures, nonces),
      now: Date.now,
      denials,
      refusals,
      spans: new RequestSpans(config.TRACEPARENTS_PER_SECOND),
      log,
      sampled,
    },
    core,
    responses,
    metrics,
    readiness,
    config.DOCS === 'on' ? serveDocs() : undefined,
  )
  const server = createGuardedServer(app, {
    connections: config.MAX_CONNECTIONS ?? defaultConnectionLimit,
    trustedProxies: config.TRUSTED_PROXIES,
  })
  server.prependListener('request', (_request, response) => {
    if (isStopping) response.setHeader('Connection', 'close')
  })
  const consolePages = config.CONSOLE_DIR === undefined ? undefined : await serveConsole(config.CONSOLE_DIR)
  const cores = new CoreUrls(config.CORE_URL)
  const internal = createInternalServer(
    createInternalApp({ cores, readiness, metrics, sampled, console: consolePages }),
    { cores, sampled },
    memoryBytes,
  )
  async function close(): Promise<void> {
    // First, so that readiness and metrics are available for as long as the gateway serves.
    internal.close()
    internal.closeAllConnections()
    keys.close()
    sampled.flush()
    await Promise.all([refusals.close(), reporter.close()])
    await Promise.all([nonces.close(), core.close()])
  }

  try {
    keys.start()
    refusals.start()
    reporter.start()
    internal.listen(config.INTERNAL_PORT, config.INTERNAL_HOST)
    await once(internal, 'listening')
    server.listen(config.GATEWAY_PORT, config.GATEWAY_HOST)
    await once(server, 'listening')
  } catch (error) {
    await close()
    throw error
  }
  const { port } = server.address() as AddressInfo
  const { port: internalPort } = internal.address() as AddressInfo
  log.info({ port, internalPort, instanceId }, 'the gateway is listening')
  process.send?.({ type: 'ready', port, internalPort })

  async function stop(reason: string): Promise<void> {
    if (isStopping) return
    isStopping = true
    log.info({ reason }, 'the gateway is stopping: it answers pending requests')
    await new Promise(resolve => setTimeout(resolve, config.STOP_DELAY_MS))
    setTimeout(() => server.closeAllConnections(), drainDeadlineMs).unref()
    setTimeout(() => process.exit(1), exitDeadlineMs).unref()
    const closed = once(server, 'close')
    server.close()
    // `close` closes connections that are idle now. Those that become idle later must be closed as well.
    const sweep = setInterval(() => server.closeIdleConnections(), sweepMs)
    await closed
    clearInterval(sweep)
    await close()
    await tracing.stop()
    log.info('the gateway has stopped')
    await output.flush()
    endProgram(0)
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  process.once('disconnect', () => stop('the supervisor has exited'))
}

try {
  await main(gatewayConfig())
} catch (error) {
  if (error instanceof ConfigurationError) for (const fault of error.faults) console.error(fault)
  else console.error(`the gateway cannot start: ${error instanceof Error ? error.message : error}`)
  endProgram(1)
}
