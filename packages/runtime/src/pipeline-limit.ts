import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Stops Node's HTTP parser after the headers of a request, as for the change of protocol: what follows is no HTTP. */
const stopParsing = 2

/** The parser of a connection, which calls `onIncoming` with each request. Not documented: pipeline-limit.test.ts covers it. */
type ParsedSocket = Socket & { parser: { onIncoming: (request: IncomingMessage, isKeptAlive: boolean) => number } }

/**
 * Limits the pipelined requests of a connection. One read of a socket can contain two thousand small requests. All of them would be
 * handled before those of other connections, and their responses kept in memory until the client reads them. Node would parse all of
 * them even if the first one closes the connection, and keep them until it has read from all other connections too: gigabytes.
 */
export class PipelineLimit {
  readonly #limit: number
  readonly #pending = new WeakMap<Duplex, number>()

  /** @param limit maximum number of requests of a connection that have no complete response yet */
  constructor(limit: number) {
    this.#limit = limit
  }

  /** Closes each connection of a server at its first request above the limit. */
  watch(server: Server): void {
    server.on('connection', (socket: Socket) => {
      const { parser } = socket as ParsedSocket
      const { onIncoming } = parser
      parser.onIncoming = (request, isKeptAlive) => {
        const pending = this.#pendingOf(socket)
        if (pending >= this.#limit) {
          socket.destroy()
          return stopParsing
        }
        const next = onIncoming(request, isKeptAlive)
        // Node answers some requests itself, such as those without a Host header. They count as long as the connection lasts.
        if (this.#pendingOf(socket) === pending) this.#pending.set(socket, pending + 1)
        return next
      }
    })
  }

  /** Call it with each request before anything is awaited. */
  add({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#pending.set(socket, this.#pendingOf(socket) + 1)
    response.once('close', () => this.#pending.set(socket, this.#pendingOf(socket) - 1))
  }

  /** Whether a connection has a request without a complete response. */
  isPending(socket: Duplex): boolean {
    return this.#pendingOf(socket) > 0
  }

  #pendingOf(socket: Duplex): number {
    return this.#pending.get(socket) ?? 0
  }
}
