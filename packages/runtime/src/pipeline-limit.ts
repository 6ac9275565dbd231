import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { hasBody } from './body-reader.ts'

/** Stops Node's HTTP parser after the headers of a request, as for the change of protocol: what follows is no HTTP. */
const stopParsing = 2

/** The parser of a connection, which calls `onIncoming` with each request. Not documented: limited-server.test.ts covers it. */
type ParsedSocket = Socket & { parser: { onIncoming: (request: IncomingMessage, isKeptAlive: boolean) => number } }

/**
 * Maximum number of requests of a connection that have no complete response yet. Few clients pipeline, and a request that waits takes about
 * 8 KB: with a limit of 32, a thousand connections used up a heap of 256 MB.
 */
export const pipelineLimit = 4
/** Maximum length of the targets and headers (see `headLength`) of a connection's requests without a complete response, if there are several. */
const pendingHeadLength = 32 * 1024

/** Maximum number of headers of a request: each takes about a hundred bytes besides its characters. */
const headerLimit = 100

type Pending = { requests: number; headLength: number }
const nothing: Pending = { requests: 0, headLength: 0 }

/** An option of Node's server that it reads from the server itself. Not documented. */
type GuardedServer = Server & { requireHostHeader?: boolean }

/**
 * Limits the pipelined requests of a connection. One read of a socket can contain two thousand small requests. All of them would be
 * handled before those of other connections, and their responses kept in memory until the client reads them. Node would parse all of
 * them even if the first one closes the connection, and keep them until it has read from all other connections too: gigabytes.
 */
export class PipelineLimit {
  readonly #pending = new WeakMap<Duplex, Pending>()
  readonly #ended = new WeakSet<Duplex>()

  /**
   * Closes each connection of a server at its first request that is above the limits, or has a body while others are pending. All requests
   * get to the handler of the server, except those with too many headers, which are for the listeners of `clientError`.
   */
  constructor(server: GuardedServer) {
    // Node would respond itself to a request without a Host header or with an unknown expectation, and nobody would count it.
    server.requireHostHeader = false
    // Node rejects a request with more while its headers or trailers arrive; before 24.21, it drops the rest of them, which may say how
    // long the body is. So it gets more than `headerLimit`.
    server.maxHeadersCount = headerLimit + 28
    server.on('checkExpectation', (request, response) => server.emit('request', request, response))
    server.on('connection', (socket: Socket) => {
      const { parser } = socket as ParsedSocket
      const { onIncoming } = parser
      parser.onIncoming = (request, isKeptAlive) => {
        if (request.rawHeaders.length > 2 * headerLimit) {
          if (!server.emit('clientError', new Error('too many headers'), socket)) socket.destroy()
          return stopParsing
        }
        if (this.#mayAdd(socket, request)) return onIncoming(request, isKeptAlive)
        socket.destroy()
        return stopParsing
      }
    })
  }

  /** Call it first with each request. */
  add(request: IncomingMessage, response: ServerResponse): void {
    const { socket } = request
    const length = headLength(request)
    this.#change(socket, 1, length)
    response.once('close', () => this.#change(socket, -1, -length))
  }

  /** Closes a connection at its next request. */
  end(socket: Duplex): void {
    this.#ended.add(socket)
  }

  /** Whether a connection has a request without a complete response. */
  isPending(socket: Duplex): boolean {
    return this.#pendingOf(socket).requests > 0
  }

  #pendingOf(socket: Duplex): Pending {
    return this.#pending.get(socket) ?? nothing
  }

  #mayAdd(socket: Duplex, request: IncomingMessage): boolean {
    if (this.#ended.has(socket)) return false
    const pending = this.#pendingOf(socket)
    if (pending.requests === 0) return true
    // What has arrived of a body is kept until the response is sent, which is after the client has read the earlier ones.
    if (hasBody(request)) return false
    return pending.requests < pipelineLimit && pending.headLength + headLength(request) <= pendingHeadLength
  }

  #change(socket: Duplex, requests: number, length: number): void {
    const pending = this.#pendingOf(socket)
    this.#pending.set(socket, { requests: pending.requests + requests, headLength: pending.headLength + length })
  }
}

function headLength({ url = '', rawHeaders }: IncomingMessage): number {
  return rawHeaders.reduce((sum, text) => sum + text.length, url.length)
}
