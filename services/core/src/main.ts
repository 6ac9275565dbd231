import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import {
  ConfigurationError,
  createLog,
  defaultBodyMemoryBytes,
  endProgram,
  pause,
  StoredDataError,
  storedDataExitCode,
  waitAtMost,
} from '@workspace-wallet/runtime'
import { startTracing } from '@workspace-wallet/runtime/start-tracing'
import packageJson from '../package.json' with { type: 'json' }
import { openCore } from './compose.ts'
import { type CoreConfig, coreConfig } from './config.ts'
import { UnsuitableSession } from './database/session-checks.ts'
import { createCoreServer } from './http/server.ts'
import { tokenTable } from './http/tokens.ts'
import { faultsOfKeyRing } from './keks/status.ts'
import { WrongChainKey } from './ledger/chain/chain-key.ts'
import { appRouter } from './routers/app-router.ts'
import type { Core } from './trpc/context.ts'

/** Runs core: `node services/core/src/main.ts`. */
async function main(config: CoreConfig): Promise<void> {
  const { log, output } = createLog('core', config.LOG_LEVEL)
  const stopping = new AbortController()
  const core = await openCore(config, log, stopping.signal)
  const { places } = core
  places.home.metrics.watchLog(output)
  const tracing = await startTracing(
    config,
    { name: 'core', version: packageJson.version, instanceId: core.instanceId },
    log,
  )
  const { server, links } = createCoreServer(core, appRouter, {
    tokens: tokenTable(config.SERVICE_TOKENS),
    bodyMemoryBytes: config.BODY_MEMORY_BYTES ?? defaultBodyMemoryBytes,
  })
  server.prependListener('request', (_request, response) => {
    if (stopping.signal.aborted) response.setHeader('connection', 'close')
  })
  try {
    await checkHome(places.home)
    await waitAtMost(furtherPlacesMs, Promise.all(places.all.slice(1).map(checkFurther)))
    server.listen(config.CORE_PORT, config.CORE_HOST)
    await once(server, 'listening')
  } catch (error) {
    await core.close()
    throw error
  }
  const { port } = server.address() as AddressInfo
  log.info({ port, instanceId: core.instanceId }, 'core listens')
  process.send?.({ type: 'ready', port })

  async function stop(reason: string): Promise<void> {
    if (stopping.signal.aborted) return
    stopping.abort()
    log.info({ reason }, 'core stops: finishing accepted calls')
    for (const link of links) link.drain()
    setTimeout(() => {
      server.closeAllConnections()
      for (const link of links) link.destroy()
    }, drainDeadlineMs).unref()
    setTimeout(() => process.exit(1), exitDeadlineMs).unref()
    const closed = once(server, 'close')
    server.close()
    // server.close() leaves connections open that are busy now: close each as soon as it is idle.
    const sweep = setInterval(() => server.closeIdleConnections(), sweepMs)
    await closed
    clearInterval(sweep)
    await core.close()
    await tracing.stop()
    log.info('core has stopped')
    await output.flush()
    endProgram(0)
  }
  process.on('SIGTERM', () => stop('SIGTERM'))
  process.on('SIGINT', () => stop('SIGINT'))
  process.once('disconnect', () => stop('the parent process has exited'))
}

/**
 * Checks that core can use its connections, and that the configured keys are those of the database. Core also starts while the
 * database is unavailable.
 *
 * @throws StoredDataError, UnsuitableSession
 */
async function checkHome(place: Core): Promise<void> {
  const faults = await findFaults(place).catch(error => {
    if (error instanceof UnsuitableSession) throw error
    place.log.warn({ err: error }, 'the database is not available yet')
    void checkLater(place)
    return []
  })
  if (faults.length > 0) throw new StoredDataError(faults)
}

/** The same for another place than home. Core starts whatever is wrong with it, or stored there: the other places work. */
async function checkFurther(place: Core): Promise<void> {
  try {
    for (const fault of await findFaults(place)) place.log.error(fault)
  } catch (error) {
    place.log.error({ err: error }, 'a place cannot be used now')
    void checkLater(place)
  }
}

/** Checks a place when its database is available. By then, core may have served others, so what is wrong is only logged. */
async function checkLater(place: Core): Promise<void> {
  for (let faults: string[] | undefined; !faults; ) {
    await pause(checkAgainMs, place.stopping)
    if (place.stopping.aborted) return
    faults = await findFaults(place).catch(() => undefined)
    for (const fault of faults ?? []) place.log.error(fault)
  }
}

async function findFaults({ checkConnections, orm, keyRing, log }: Core): Promise<string[]> {
  try {
    await checkConnections()
  } catch (error) {
    if (error instanceof WrongChainKey) return [error.message]
    throw error
  }
  return faultsOfKeyRing(orm.em, keyRing, log)
}

/** How long core waits before it checks a place again whose database was unavailable. */
const checkAgainMs = 2_000
/** How long a start waits for places besides home. */
const furtherPlacesMs = 2_000
/** When connections are closed that are not idle: also those that have not sent a request yet. */
const drainDeadlineMs = 9_000
const exitDeadlineMs = 13_000
const sweepMs = 100

try {
  await main(coreConfig())
} catch (error) {
  if (error instanceof ConfigurationError) for (const fault of error.faults) console.error(fault)
  else console.error(`core cannot start: ${error instanceof Error ? error.message : error}`)
  endProgram(error instanceof StoredDataError ? storedDataExitCode : 1)
}
