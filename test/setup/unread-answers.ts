import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect } from 'node:net'
import { expect, vi } from 'vitest'
import { until } from './until.ts'

/** Expects a server whose `/metrics` are larger than what the kernel accepts to close the connection of a client that does not read. */
export async function expectUnreadClosed(server: Server): Promise<void> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  const client = connect((server.address() as AddressInfo).port, '127.0.0.1').on('error', () => {})
  try {
    const answering = once(server, 'request')
    client.pause().write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
    const [{ socket }] = await answering
    await until('the answer waits', () => socket.writableLength > 0)
    vi.advanceTimersByTime(29_000)
    expect(socket.destroyed).toBe(false)
    vi.advanceTimersByTime(2_000)
    expect(socket.destroyed).toBe(true)
  } finally {
    client.destroy()
    server.close()
  }
}
