import express from 'express'
import { afterEach, expect, test, vi } from 'vitest'
import { expectUnreadClosed, UnreadClients } from '../../../test/setup/unread-answers.ts'
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
