import { once } from 'node:events'
import { createServer as createHttpServer, type Server } from 'node:http'
import { connect, type Socket } from 'node:net'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { batchProtocol } from '@workspace-wallet/contract'
import { acceptUpgrade, detachUpgrade, type Log, SampledLog } from '@workspace-wallet/runtime'
import express from 'express'
import { afterEach, beforeEach, describe, expect, test, vi } from 'vitest'
import { upgradeText } from '../../../test/setup/batches.ts'
import { readInIterations, writeEndlessly } from '../../../test/setup/iterations.ts'
import { listen } from '../../../test/setup/listen.ts'
import { expectClosedAfterStall, expectUnreadClosed, UnreadClients } from '../../../test/setup/unread-answers.ts'
import { until } from '../../../test/setup/until.ts'
import { CoreUrls } from './core-urls.ts'
import { createInternalServer } from './server.ts'

afterEach(() => {
  vi.useRealTimers()
  lines.length = 0
})

/** Larger than what the kernel accepts. */
const answer = Buffer.alloc(16 * 2 ** 20)

const lines: object[] = []
const log = { warn: (fields: object, message: string) => lines.push({ ...fields, message }) } as unknown as Log

function createServer(memoryBytes: number, cores = new CoreUrls([])) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const app = express().get('/metrics', (_request, response) => void response.send(answer))
  return createInternalServer(app, { cores, sampled: new SampledLog(log) }, memoryBytes)
}

test('a client of the internal listener that does not read its answer is disconnected', async () => {
  await expectUnreadClosed(createServer(2 * answer.length))
})

test('an address that reads nothing at the internal listener costs no other one a connection', async () => {
  const clients = new UnreadClients(createServer(2.5 * answer.length))
  try {
    const slow = await clients.request('127.0.0.1')
    vi.advanceTimersByTime(500)
    const greedy = [await clients.request('127.0.0.2'), await clients.request('127.0.0.2')]
    vi.advanceTimersByTime(500)
    expect([slow, ...greedy].map(({ destroyed }) => destroyed)).toEqual([false, true, false])
  } finally {
    clients.close()
  }
})

test('a client that does not read what core sends on its connection for batches is disconnected, which is logged', async () => {
  const core = createHttpServer().on('upgrade', (_request, socket: Socket) => {
    detachUpgrade(socket)
    acceptUpgrade(socket, batchProtocol)
    socket.on('error', () => {}).write(answer)
  })
  const cores = new CoreUrls([`http://127.0.0.1:${await listen(core)}`])
  const server = createServer(2 * answer.length, cores)
  const port = await listen(server)
  const connected = once(server, 'connection') as Promise<[Socket]>
  const client = connect(port, '127.0.0.1').on('error', () => {})
  try {
    client.pause().write(upgradeText('token'))
    const [socket] = await connected
    await until('answers wait', () => socket.writableNeedDrain)
    expectClosedAfterStall(socket)
    expect(lines).toEqual([{ address: '127.0.0.1', message: 'a connection was closed: its answers were not read' }])
  } finally {
    client.destroy()
    server.close()
    core.close()
  }
})

describe('of what the connections of a token send for core', () => {
  const received = new Map<string, number>()
  const core = createHttpServer().on('upgrade', ({ headers: { authorization = '' } }, socket: Socket) => {
    detachUpgrade(socket)
    acceptUpgrade(socket, batchProtocol)
    socket.on('data', ({ length }) => received.set(authorization, (received.get(authorization) ?? 0) + length))
  })
  const callers: Socket[] = []
  const clients: Socket[] = []
  let server: Server
  let port: number
  beforeEach(async () => {
    server = createServer(2 * answer.length, new CoreUrls([`http://127.0.0.1:${await listen(core)}`]))
    server.on('connection', socket => callers.push(socket))
    port = await listen(server)
  })
  afterEach(() => {
    for (const client of clients.splice(0)) client.destroy()
    server.close()
    core.close()
  })

  async function open(token: string): Promise<Socket> {
    const client = connect(port, '127.0.0.1').on('error', () => {})
    clients.push(client)
    client.write(upgradeText(token))
    await once(client, 'data')
    return client
  }

  /** Opens connections that send without an end. */
  async function flood(token: string, connections: number): Promise<void> {
    const flooding = await Promise.all(Array.from({ length: connections }, () => open(token)))
    for (const client of flooding) writeEndlessly(client, Buffer.alloc(2 ** 20))
  }

  test('a piece is passed on at a time', async () => {
    await flood('a', 10)
    const inIteration = await readInIterations(callers, 100)
    // Node reads ahead of the first piece of each.
    expect(Math.max(...inIteration.slice(50))).toBeLessThanOrEqual(2 ** 18)
  })

  test('nothing waits behind that of another token', async () => {
    await flood('a', 30)
    const other = await open('b')
    other.write(Buffer.alloc(2 ** 20))
    let iterations = 0
    for (; received.get('Bearer b') !== 2 ** 20; iterations++) await nextIteration()
    // About 20 pieces; with a turn of 31 each, it would be 600 iterations.
    expect(iterations).toBeLessThan(200)
  })
})
