import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Duplex } from 'node:stream'

/**
 * Limits the pipelined requests of a connection. One read of a socket can contain two thousand small requests. All of them would be
 * handled before those of other connections, and their responses kept in memory until the client reads them.
 */
export class PipelineLimit {
  readonly #limit: number
  readonly #pending = new WeakMap<Duplex, number>()

  /** @param limit maximum number of requests of a connection that have no complete response yet */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Call it first with each request. Returns false for one above the limit, whose connection it closes: do not handle it. */
  accepts({ socket }: IncomingMessage, response: ServerResponse): boolean {
    const pending = this.#pendingOf(socket) + 1
    if (pending > this.#limit) {
      socket.destroy()
      return false
    }
    this.#pending.set(socket, pending)
    response.once('close', () => this.#pending.set(socket, this.#pendingOf(socket) - 1))
    return true
  }

  /** Whether a connection has a request without a complete response. */
  isPending(socket: Duplex): boolean {
    return this.#pendingOf(socket) > 0
  }

  #pendingOf(socket: Duplex): number {
    return this.#pending.get(socket) ?? 0
  }
}
