import { createServer as createHttpServer } from 'node:http'
import { createServer, type Socket } from 'node:net'
import type { LeasedWebhook } from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
import { serveBatches, upgradeText } from './setup/batches.ts'
import { listen } from './setup/listen.ts'
import { openConnection } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** An attacker controls a core, and answers the internal listener of a gateway, and couriers, with whatever could end them. */

let system: System
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
})
afterAll(() => system.stop())

const isRunning = ({ process: { exitCode, signalCode } }: Program) => exitCode === null && signalCode === null

describe('what the internal listener passes back', () => {
  let gateway: Program
  /** Answers every request. */
  let answer: (socket: Socket) => void = socket => socket.destroy()
  beforeAll(async () => {
    const server = createServer(socket => socket.on('error', () => {}).on('data', () => answer(socket)))
    gateway = await system.startGateway({
      CORE_URL: `http://127.0.0.1:${await listen(server)}`,
      NODE_OPTIONS: '--max-old-space-size=128',
    })
  })

  test.each([
    ['a Trailer without chunks', 'HTTP/1.1 200 OK\r\nTrailer: x\r\nContent-Length: 2\r\n\r\n{}', 200],
    [
      'a Trailer of chunks',
      'HTTP/1.1 200 OK\r\nTrailer: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\nx: 1\r\n\r\n',
      200,
    ],
    ['a status below 100', 'HTTP/1.1 099 OK\r\nContent-Length: 2\r\n\r\n{}', 502],
    ['a status above 599', 'HTTP/1.1 999 OK\r\nContent-Length: 2\r\n\r\n{}', 999],
    ['a control character in the reason', 'HTTP/1.1 200 O\x01K\r\nContent-Length: 2\r\n\r\n{}', 200],
    [
      'headers of the connection',
      'HTTP/1.1 200 OK\r\nConnection: x, Upgrade\r\nUpgrade: x\r\nKeep-Alive: x\r\nContent-Length: 2\r\n\r\n{}',
      200,
    ],
  ])('%s does not end the gateway', async (_, text, status) => {
    answer = socket => socket.write(Buffer.from(text, 'latin1'))
    const response = await fetch(`${gateway.internalUrl}/trpc/session.whoami`)
    expect([response.status, await response.text(), response.headers.get('upgrade')]).toEqual([status, '{}', null])
    expect((await fetch(`${gateway.url}/healthz`)).status).toBe(200)
    expect(isRunning(gateway)).toBe(true)
  })

  test('a refusal of a connection for batches that never ends takes little memory', async () => {
    const piece = Buffer.alloc(2 ** 20, 'x')
    let sent = 0
    answer = socket => {
      const send = () => {
        while (!socket.destroyed && socket.write(piece)) sent++
        if (!socket.destroyed) socket.once('drain', send)
      }
      socket.write('HTTP/1.1 500 Internal Server Error\r\n\r\n')
      send()
    }
    const caller = await openConnection(gateway.internalUrl)
    let received = ''
    caller.on('data', data => {
      received += data
    })
    caller.write(upgradeText('x'.repeat(40)))
    await until('it is closed', () => caller.destroyed)
    expect(received).toMatch(/^HTTP\/1\.1 500 [\s\S]*Content-Length: 65536\r\n/)
    expect(sent).toBeLessThan(100)
    expect(isRunning(gateway)).toBe(true)
  })
})

describe('leases that are none', () => {
  let courier: Program
  let lease: unknown
  let asked = 0
  beforeAll(async () => {
    const server = createHttpServer((_request, response) => response.end('{}'))
    serveBatches(server, ({ calls, reply }) => {
      if (calls[0]!.path === 'courier.lease') asked++
      reply(calls.map(({ path }) => ({ data: path === 'courier.lease' ? lease : { accepted: true } })))
    })
    courier = await system.startCourier({
      CORE_URL: `http://127.0.0.1:${await listen(server)}`,
      COURIER_ATTEMPTS: '64',
      NODE_OPTIONS: '--max-old-space-size=128',
    })
  })

  /** Nothing listens there. */
  const webhook = (changes: Partial<Record<keyof LeasedWebhook, unknown>> = {}) => ({
    webhookId: 'w',
    workspaceId: 'x',
    generation: crypto.randomUUID(),
    url: 'http://127.0.0.1:2/',
    concurrency: 1,
    leaseMs: 60_000,
    deliveries: [{ position: 1, body: 'x', headers: { 'webhook-id': 'x' } }],
    ...changes,
  })
  const leaseOf = (webhooks: unknown) => ({ webhooks, revoked: [] })

  test.each<[string, () => unknown]>([
    ['nothing', () => null],
    ['no webhooks', () => ({ revoked: [] })],
    ['a number of revoked leases', () => ({ webhooks: [], revoked: 5 })],
    ['a webhook that is null', () => leaseOf([null])],
    ['a webhook without deliveries', () => leaseOf([webhook({ deliveries: undefined })])],
    ['a delivery that is null', () => leaseOf([webhook({ deliveries: [null] })])],
    ['a URL that is a number', () => leaseOf([webhook({ url: 5 })])],
    ['a URL that is none', () => leaseOf([webhook({ url: 'nonsense' })])],
    [
      'headers that are none',
      () => leaseOf([webhook({ deliveries: [{ position: 1, body: 'x', headers: { 'x\n': 'y\n' } }] })]),
    ],
    [
      'a header of the connection',
      () => leaseOf([webhook({ deliveries: [{ position: 1, body: 'x', headers: { trailer: 'x' } }] })]),
    ],
  ])('%s does not end the courier', async (_, make) => {
    lease = make()
    const before = asked
    await until('the courier has asked again', () => asked >= before + 2 || !isRunning(courier))
    lease = leaseOf([])
    const answered = asked
    await until('the courier goes on', () => asked >= answered + 2 || !isRunning(courier))
    expect(isRunning(courier)).toBe(true)
  })

  test('more of them than the courier asked for are not held', async () => {
    lease = leaseOf(Array.from({ length: 2_000 }, () => webhook({ leaseMs: 1_000_000 })))
    const before = asked
    await until('the courier has asked again', () => asked >= before + 5)
    const metrics = await (await fetch(`${courier.internalUrl}/metrics`)).text()
    const [, held] = /^courier_leases (\d+)$/m.exec(metrics)!
    expect(Number(held)).toBeLessThanOrEqual(64)
    lease = leaseOf([])
  })
})
