import { once } from 'node:events'
import type { Server } from 'node:http'
import { type AddressInfo, connect, type Socket } from 'node:net'
import { expect, vi } from 'vitest'
import { until } from './until.ts'

/** Clients that read nothing of the `/metrics` of a server, which are larger than what the kernel accepts. */
export class UnreadClients {
  readonly #server: Server
  readonly #clients: Socket[] = []

  constructor(server: Server) {
    this.#server = server.listen(0, '127.0.0.1')
  }

  /** Opens a connection from this address. Returns the server's side of it, once its answer waits. */
  async request(localAddress = '127.0.0.1'): Promise<Socket> {
    if (!this.#server.listening) await once(this.#server, 'listening')
    const answering = once(this.#server, 'request')
    const { port } = this.#server.address() as AddressInfo
    const client = connect({ port, host: '127.0.0.1', localAddress }).on('error', () => {})
    this.#clients.push(client)
    client.pause().write('GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n')
    const [{ socket }] = await answering
    await until('the answer waits', () => socket.writableLength > 0)
    return socket
  }

  close(): void {
    for (const client of this.#clients) client.destroy()
    this.#server.close()
  }
}

/** Expects a server to close the connection of a client that does not read. Timers are those of the test. */
export async function expectUnreadClosed(server: Server): Promise<void> {
  const clients = new UnreadClients(server)
  try {
    expectClosedAfterStall(await clients.request())
  } finally {
    clients.close()
  }
}

/** Expects a server to close its side of a connection of which nothing is read for half a minute. Timers are those of the test. */
export function expectClosedAfterStall(socket: Socket): void {
  vi.advanceTimersByTime(29_000)
  expect(socket.destroyed).toBe(false)
  vi.advanceTimersByTime(2_000)
  expect(socket.destroyed).toBe(true)
}
