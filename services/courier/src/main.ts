import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import type { Delivery, LeasedWebhook } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import {
  ConfigurationError,
  createLog,
  endProgram,
  InstanceReporter,
  type Log,
  readReadiness,
  SampledLog,
} from '@workspace-wallet/runtime'
import { startTracing } from '@workspace-wallet/runtime/start-tracing'
import { exemplarOf, traceparentOf } from '@workspace-wallet/runtime/tracing'
import packageJson from '../package.json' with { type: 'json' }
import { type AttemptOptions, type AttemptOutcome, attempt } from './attempt.ts'
import { type CourierConfig, courierConfig } from './config.ts'
import { Courier } from './courier.ts'
import { attemptMs, attemptReserveMs } from './deliver.ts'
import { endDeliverySpan, startDeliverySpan } from './delivery-span.ts'
import { createInternalServer } from './internal-server.ts'
import { CourierMetrics } from './metrics.ts'
import { resolveHost } from './resolve.ts'

/** Attempts in progress end within 15 seconds; their reports take a moment more. */
const drainDeadlineMs = attemptReserveMs + 1_000

/** The courier program: `node services/courier/src/main.ts`. */
async function main(config: CourierConfig): Promise<void> {
  const { log, output } = createLog('courier', config.LOG_LEVEL)
  const core = createCoreClient({ url: config.CORE_URL, token: config.CORE_TOKEN })
  const metrics = new CourierMetrics()
  const sampled = new SampledLog(log)
  const options = { allowed: config.WEBHOOK_ALLOWED_NETWORKS, resolve: resolveHost, timeoutMs: attemptMs }
  const courier = new Courier({
    core,
    limit: config.COURIER_ATTEMPTS,
    attempt: measuredAttempt(options, metrics, log, sampled),
    log,
  })
  metrics.watch(courier, core, output)
  const reporter = new InstanceReporter({
    version: packageJson.version,
    health: async () => ({
      fault: courier.fault,
      waiting: courier.load.waiting,
      unhealthyCores: core.load().unhealthyCores,
    }),
    send: report => core.instances.report.mutate(report),
    leave: instance => core.instances.leave.mutate(instance),
    log,
  })
  const { instanceId } = reporter
  const tracing = await startTracing(config, { name: 'courier', version: packageJson.version, instanceId }, log)
  let isStopping = false
  const readiness = () => readReadiness({ core: async () => courier.fault }, isStopping)
  const internal = createInternalServer(metrics.registry, readiness)
  try {
    internal.listen(config.INTERNAL_PORT, config.INTERNAL_HOST)
    await once(internal, 'listening')
  } catch (error) {
    await core.close()
    throw error
  }
  courier.start()
  reporter.start()
  const { port } = internal.address() as AddressInfo
  log.info({ internalPort: port, instanceId }, 'the courier is running')
  process.send?.({ type: 'ready', port, internalPort: port })

  async function stop(reason: string): Promise<void> {
    if (isStopping) return
    isStopping = true
    log.info({ reason }, 'the courier is stopping: it finishes the deliveries in progress')
    setTimeout(() => process.exit(1), drainDeadlineMs).unref()
    await courier.stop()
    internal.close()
    internal.closeAllConnections()
    sampled.flush()
    await reporter.close()
    await core.close()
    await tracing.stop()
    log.info('the courier has stopped')
    await output.flush()
    endProgram(0)
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  process.once('disconnect', () => stop('the supervisor has exited'))
}

/** Logs no path or query of the URL, no body and no signature: they may contain secrets of the receiver. */
function measuredAttempt(options: AttemptOptions, metrics: CourierMetrics, log: Log, sampled: SampledLog) {
  return async (webhook: LeasedWebhook, delivery: Delivery): Promise<AttemptOutcome> => {
    const startedAtMs = performance.now()
    const span = startDeliverySpan(webhook, delivery)
    const outcome = await attempt(webhook, delivery, options, traceparentOf(span))
    endDeliverySpan(span, outcome)
    const ms = performance.now() - startedAtMs
    metrics.attempted(outcome.result, ms, exemplarOf(span))
    const { webhookId, workspaceId } = webhook
    const { result, status, code } = outcome
    const fields = {
      webhookId,
      workspaceId,
      position: delivery.position,
      host: URL.parse(webhook.url)?.host,
      result,
      status,
      code,
      ms: Math.round(ms),
    }
    log.debug(fields, 'an event was sent')
    if (result !== 'success')
      sampled.write(webhookId, {
        level: 'warn',
        fields,
        message: 'a delivery failed',
        summary: 'more deliveries failed',
      })
    return outcome
  }
}

try {
  await main(courierConfig())
} catch (error) {
  if (error instanceof ConfigurationError) for (const fault of error.faults) console.error(fault)
  else console.error(`the courier cannot start: ${error instanceof Error ? error.message : error}`)
  endProgram(1)
}
