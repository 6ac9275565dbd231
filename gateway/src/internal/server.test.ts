import { once } from 'node:events'
import { type AddressInfo, connect, type Socket } from 'node:net'
import express from 'express'
import { afterEach, expect, test, vi } from 'vitest'
import { expectUnreadClosed } from '../../../test/setup/unread-answers.ts'
import { until } from '../../../test/setup/until.ts'
import { createInternalServer } from './server.ts'

afterEach(() => vi.useRealTimers())

/** Larger than what the kernel accepts. */
const answer = Buffer.alloc(16 * 2 ** 20)

function createServer(memoryBytes: number) {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const app = express().get('/metrics', (_request, response) => void response.send(answer))
  const tunnel = {} as Parameters<typeof createInternalServer>[1]
  return createInternalServer(app, tunnel, memoryBytes)
}

test('a client of the internal listener that does not read its answer is disconnected', async () => {
  await expectUnreadClosed(createServer(2 * answer.length))
})

test('an address that reads nothing at the internal listener costs no other one a connection', async () => {
  const server = createServer(2.5 * answer.length).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const { port } = server.address() as AddressInfo
  const clients: Socket[] = []
  /** The server's side of a connection whose answer waits. */
  async function request(localAddress: string): Promise<Socket> {
    const answering = once(server, 'request')
    const client = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
    clients.push(client)
    client.pause().write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
    const [{ socket }] = await answering
    await until('the answer waits', () => socket.writableLength > 0)
    return socket
  }
  try {
    const slow = await request('127.0.0.1')
    vi.advanceTimersByTime(500)
    const greedy = [await request('127.0.0.2'), await request('127.0.0.2')]
    vi.advanceTimersByTime(500)
    expect([slow, ...greedy].map(({ destroyed }) => destroyed)).toEqual([false, true, false])
  } finally {
    for (const client of clients) client.destroy()
    server.close()
  }
})
