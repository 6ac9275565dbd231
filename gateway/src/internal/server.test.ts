import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import express from 'express'
import { expect, test, vi } from 'vitest'
import { until } from '../../../test/setup/until.ts'
import { createInternalServer } from './server.ts'

test('whoever does not read an answer of the internal listener is disconnected', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  // Much more than the kernel takes.
  const app = express().get('/metrics', (_request, response) => void response.send(Buffer.alloc(16 * 2 ** 20)))
  const server = createInternalServer(app, {} as never).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const answering = once(server, 'request')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  client.pause().write('GET /metrics HTTP/1.1\r\nHost: gateway\r\n\r\n')
  const [{ socket }] = await answering
  await until('the answer waits', () => socket.writableLength > 0)
  vi.advanceTimersByTime(29_000)
  expect(socket.destroyed).toBe(false)
  vi.advanceTimersByTime(2_000)
  expect(socket.destroyed).toBe(true)
  client.destroy()
  vi.useRealTimers()
  server.close()
})
