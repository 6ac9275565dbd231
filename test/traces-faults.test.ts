/** What traces cost when they are off, and when their collector does not answer. */
import { createServer, type Server, type Socket } from 'node:net'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { pickFreePort } from '../cli/processes/ports.ts'
import { call, createPath } from './setup/client.ts'
import { listen } from './setup/listen.ts'
import { logLines } from './setup/log-lines.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system?.stop())

let server: Server | undefined
const sockets: Socket[] = []
afterEach(() => {
  for (const socket of sockets.splice(0)) socket.destroy()
  server?.close()
  server = undefined
})

/** Accepts connections, and never answers. */
async function startFrozenCollector(): Promise<string> {
  server = createServer(socket => sockets.push(socket.on('error', () => {})))
  return `http://127.0.0.1:${await listen(server)}`
}

/** Requires nothing of a collector: each one is recorded. */
const traced = { OTEL_BSP_SCHEDULE_DELAY: '10', OTEL_TRACES_SAMPLER: 'parentbased_always_on' }

async function transferThrough(baseUrl: string): Promise<void> {
  const { body } = await call({ ...system, baseUrl }, 'POST', createPath, transferOrder(system))
  // On a busy machine, the service may answer S002: it could not do it now.
  expect(['2000', 'S002']).toContain(body.code)
}

test.each(['frozen', 'absent'])('a collector that is %s keeps no request and no stop waiting', async state => {
  const collectorUrl = state === 'frozen' ? await startFrozenCollector() : `http://127.0.0.1:${await pickFreePort()}`
  const environment = { ...traced, OTEL_EXPORTER_OTLP_ENDPOINT: collectorUrl, OTEL_EXPORTER_OTLP_TIMEOUT: '500' }
  const gateway = await system.startGateway(environment)
  const isReported = () => logLines(gateway).some(({ msg }) => String(msg).startsWith('spans could not be sent'))
  await until('the fault is logged', async () => {
    await transferThrough(gateway.url)
    return isReported()
  })
  expect(await gateway.stop()).toBe(0)
  expect(gateway.output()).not.toContain('still open')
})

test('spans beyond those that may wait for a frozen collector are dropped', async () => {
  const gateway = await system.startGateway({
    ...traced,
    OTEL_BSP_MAX_QUEUE_SIZE: '16',
    OTEL_EXPORTER_OTLP_ENDPOINT: await startFrozenCollector(),
    OTEL_EXPORTER_OTLP_TIMEOUT: '500',
  })
  const hasDropped = () => logLines(gateway).some(({ reason }) => /^Dropped \d+ spans/.test(String(reason)))
  const clients = Array.from({ length: 32 }, async () => {
    while (!hasDropped()) await transferThrough(gateway.url)
  })
  await until('spans are dropped', () => Promise.all(clients))
  expect(await gateway.stop()).toBe(0)
})

/** Writes the URL of each module of OpenTelemetry that a program loads to its standard error. */
const reportModules = `
  import { registerHooks } from 'node:module'
  registerHooks({
    load(url, context, nextLoad) {
      const [, name] = /node_modules\\/(@opentelemetry\\/[^/]+)/.exec(url) ?? []
      if (name) console.error('loads ' + name)
      return nextLoad(url, context)
    },
  })`

test('without a collector, programs load the API of OpenTelemetry, and nothing of its SDK', async () => {
  const NODE_OPTIONS = `--import=data:text/javascript,${encodeURIComponent(reportModules)}`
  const loadedBy = async (environment: NodeJS.ProcessEnv) => {
    const programs = [
      await system.startCore({ ...environment, NODE_OPTIONS }),
      await system.startGateway({ ...environment, NODE_OPTIONS }),
      await system.startCourier({ ...environment, NODE_OPTIONS }),
    ]
    for (const program of programs) expect(await program.stop()).toBe(0)
    return programs.map(program => new Set(Array.from(program.output().matchAll(/loads (\S+)/g), ([, name]) => name)))
  }
  expect(await loadedBy({})).toEqual(Array(3).fill(new Set(['@opentelemetry/api'])))
  const OTEL_EXPORTER_OTLP_ENDPOINT = await startFrozenCollector()
  for (const loaded of await loadedBy({ OTEL_EXPORTER_OTLP_ENDPOINT }))
    expect(loaded).toContain('@opentelemetry/sdk-trace')
})
