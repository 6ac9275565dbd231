import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'

/** Stops Node's HTTP parser after the headers of a request, as for the change of protocol: what follows is no HTTP. */
const stopParsing = 2

/** The parser of a connection, which calls `onIncoming` with each request. Not documented: limited-server.test.ts covers it. */
type ParsedSocket = Socket & { parser: { onIncoming: (request: IncomingMessage, isKeptAlive: boolean) => number } }

/** An option of Node's server that it reads from the server itself. Not documented. */
type GuardedServer = Server & { requireHostHeader?: boolean }

/**
 * Limits the pipelined requests of a connection. One read of a socket can contain two thousand small requests. All of them would be
 * handled before those of other connections, and their responses kept in memory until the client reads them. Node would parse all of
 * them even if the first one closes the connection, and keep them until it has read from all other connections too: gigabytes.
 */
export class PipelineLimit {
  readonly #pending = new WeakMap<Duplex, number>()
  readonly #ended = new WeakSet<Duplex>()

  /**
   * Closes each connection of a server at its first request above the limit. All requests get to the handler of the server.
   *
   * @param limit maximum number of requests of a connection that have no complete response yet
   */
  constructor(server: GuardedServer, limit: number) {
    // Node would respond itself to a request without a Host header or with an unknown expectation, and nobody would count it.
    server.requireHostHeader = false
    server.on('checkExpectation', (request, response) => server.emit('request', request, response))
    server.on('connection', (socket: Socket) => {
      const { parser } = socket as ParsedSocket
      const { onIncoming } = parser
      parser.onIncoming = (request, isKeptAlive) => {
        if (this.#pendingOf(socket) < limit && !this.#ended.has(socket)) return onIncoming(request, isKeptAlive)
        socket.destroy()
        return stopParsing
      }
    })
  }

  /** Call it first with each request. */
  add({ socket }: IncomingMessage, response: ServerResponse): void {
    this.#pending.set(socket, this.#pendingOf(socket) + 1)
    response.once('close', () => this.#pending.set(socket, this.#pendingOf(socket) - 1))
  }

  /** Closes a connection at its next request. */
  end(socket: Duplex): void {
    this.#ended.add(socket)
  }

  /** Whether a connection has a request without a complete response. */
  isPending(socket: Duplex): boolean {
    return this.#pendingOf(socket) > 0
  }

  #pendingOf(socket: Duplex): number {
    return this.#pending.get(socket) ?? 0
  }
}
