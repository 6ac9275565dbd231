import { once } from 'node:events'
import { type AddressInfo, connect } from 'node:net'
import { Gauge, Registry } from 'prom-client'
import { expect, test, vi } from 'vitest'
import { until } from '../../../test/setup/until.ts'
import { createInternalServer } from './internal-server.ts'

test('whoever does not read an answer of the internal listener is disconnected', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'performance'] })
  const registry = new Registry()
  // Much more than the kernel takes.
  new Gauge({ name: 'large', help: 'x'.repeat(16 * 2 ** 20), registers: [registry] })
  const server = createInternalServer(registry, async () => ({ status: 'ready' }) as never).listen(0, '127.0.0.1')
  await once(server, 'listening')
  const answering = once(server, 'request')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  client.pause().write('GET /metrics HTTP/1.1\r\nHost: courier\r\n\r\n')
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
