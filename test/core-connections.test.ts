import type { Socket } from 'node:net'
import { packBatch } from '@workspace-wallet/contract'
import { frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { upgradeText } from './setup/batches.ts'
import { readMetric } from './setup/metrics.ts'
import { openConnection } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** Callers that misuse their connections to core. Core closes them, and serves everybody else. */

const bodyMemoryBytes = 16 * 2 ** 20

let system: System
let core: Program
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
  core = await system.startCore({ BODY_MEMORY_BYTES: String(bodyMemoryBytes) })
})
afterAll(() => system.stop())

/** Connections that read nothing. */
async function openUnread(count: number): Promise<Socket[]> {
  const sockets = await Promise.all(Array.from({ length: count }, () => openConnection(core.url)))
  for (const socket of sockets) socket.on('error', () => {}).pause()
  return sockets
}

const isServed = async () => (await fetch(`${core.url}/readyz`)).ok

test('thousands of pipelined requests without a token close the connection, and others are served', async () => {
  const sockets = await openUnread(20)
  for (const socket of sockets) {
    socket.write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n'.repeat(3000))
    // Only a socket that reads learns that it was closed.
    socket.resume()
  }
  await until('the connections are closed', () => sockets.every(({ closed }) => closed))
  expect(await isServed()).toBe(true)
})

test('answers that nobody reads take a limited part of the memory, and others are served', async () => {
  // An answer repeats the path of each call twice: more than the buffers of a connection hold.
  const body = packBatch(Array.from({ length: 512 }, () => ({ path: 'x'.repeat(4_000), type: 'query', input: null })))
  const request = Buffer.concat([
    Buffer.from(upgradeText(system.gatewayToken)),
    ...[1, 2, 3].map(id => packFrame(frameKinds.batch, id, body)),
  ])
  const sockets: Socket[] = []
  await until('answers are closed that nobody reads', async () => {
    const [socket] = await openUnread(1)
    socket!.write(request)
    sockets.push(socket!)
    return (await readMetric(core.url, 'core_closed_answers_total')) > 0
  })
  expect(await isServed()).toBe(true)
  for (const socket of sockets) socket.destroy()
  await until('no answer waits', async () => (await readMetric(core.url, 'core_unread_answer_bytes')) === 0)
})
