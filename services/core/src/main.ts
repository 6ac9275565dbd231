import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { ConfigurationError } from '../contract/index.ts'
import { type CoreConfig, coreConfig } from './config.ts'
import { openCore } from './core.ts'
import { createLog } from './log.ts'
import { createCoreServer } from './server.ts'
import { tokenTable } from './tokens.ts'

/** Core, as a program: `node services/core/src/main.ts`. */
async function main(config: CoreConfig): Promise<void> {
  const log = createLog('core', config.LOG_LEVEL)
  const core = await openCore(config, log)
  let draining = false
  const server = createCoreServer(core, tokenTable(config.SERVICE_TOKENS), () => draining)
  server.listen(config.CORE_PORT, config.CORE_HOST)
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  log.info({ port }, 'core listens')
  process.send?.({ type: 'ready', port })

  async function stop(reason: string): Promise<void> {
    if (draining) return
    draining = true
    log.info({ reason }, 'core stops: finishing what it has begun')
    setTimeout(() => process.exit(1), drainDeadlineMs).unref()
    const closed = once(server, 'close')
    server.close()
    server.closeIdleConnections()
    await closed
    await core.close()
    log.info('core has stopped')
    process.exit(0)
  }
  process.once('SIGTERM', () => stop('SIGTERM'))
  process.once('SIGINT', () => stop('SIGINT'))
  process.once('disconnect', () => stop('the supervisor has gone'))
}

const drainDeadlineMs = 9_000

try {
  await main(coreConfig())
} catch (error) {
  if (error instanceof ConfigurationError) for (const fault of error.faults) console.error(fault)
  else console.error(`core cannot start: ${error instanceof Error ? error.message : error}`)
  process.exit(1)
}
