import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { batchPath, type Credentials, call, signedHeaders } from './setup/client.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { openConnection, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createTenant } from './setup/workspaces.ts'

/** The holder of a key requests large responses and does not read them, from a gateway with the heap of a small container. */

const mebibyte = 2 ** 20
const memoryBytes = 16 * mebibyte
const environment = { NODE_OPTIONS: '--max-old-space-size=128', RESPONSE_MEMORY_BYTES: String(memoryBytes) }
const eventsPath = '/api/v1/event/query/events/0'
const events = 500
/** As many as a connection may pipeline. */
const pipelined = 4

let system: System
let gateway: Program
let neighbour: Credentials
beforeAll(async () => {
  system = await startSystem({ gatewayEnvironment: environment })
  gateway = system.gateways[0]!
  neighbour = await createTenant(system)
  const remark = 'x'.repeat(256)
  for (let batch = 0; batch < events / 100; batch++) {
    const transfers = Array.from({ length: 100 }, (_, at) => transferOrder(system, { bizId: `${batch}-${at}`, remark }))
    expect((await call(system, 'POST', batchPath, { transfers })).body.code).toBe('2000')
  }
})
afterAll(() => system.stop())

const responseBytes = () => readMetric(gateway.internalUrl, 'gateway_response_bytes')

/** How many requests for events the gateway has answered, with any code. */
async function answeredCount(): Promise<number> {
  const text = await (await fetch(`${gateway.internalUrl}/metrics`)).text()
  const counts = text.matchAll(
    /^gateway_request_duration_seconds_count\{route="[^"]*events[^"]*",code="\w+"\} (\d+)$/gm,
  )
  return [...counts].reduce((sum, [, count]) => sum + Number(count), 0)
}

test('responses that nobody reads share the memory for responses, and others are served', async () => {
  const sockets = []
  for (let connection = 0; connection < 48; connection++) {
    const before = await answeredCount()
    const requests = Array.from({ length: pipelined }, async () =>
      requestText('GET', `${eventsPath}?size=${events}`, await signedHeaders(system, 'GET', eventsPath, undefined)),
    )
    const socket = await openConnection(gateway.url)
    socket.on('error', () => {}).pause()
    socket.write((await Promise.all(requests)).join(''))
    sockets.push(socket)
    await until('the requests are answered', async () => (await answeredCount()) >= before + pipelined)
    expect(await responseBytes()).toBeLessThanOrEqual(memoryBytes / 2)
    expect((await call(neighbour, 'GET', '/api/v1/wallets')).body.code).toBe('2000')
  }
  const { body } = await call(system, 'GET', `${eventsPath}?size=${events}`)
  expect(body.data.content).toHaveLength(events)
  for (const socket of sockets) socket.destroy()
  await until('the memory for responses is free again', async () => (await responseBytes()) === 0)
})
