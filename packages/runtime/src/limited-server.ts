import { type IncomingMessage, type RequestListener, Server, type ServerOptions, type ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { AddressBlock } from './addresses.ts'
import { hasBody, limitPieces } from './body-reader.ts'
import { limitConnections } from './connection-limit.ts'
import { PipelineLimit } from './pipeline-limit.ts'
import { detachUpgrade } from './upgrades.ts'

export type Limits = {
  /** Maximum number of connections. One client address gets at most half of it, unless it is that of a trusted proxy. */
  connections: number
  trustedProxies?: readonly AddressBlock[]
}

/** What takes over connections whose clients ask for another protocol at a path. Other requests for an upgrade are served as usual. */
type Upgrades = {
  protocol: string
  path: string
  open: (request: IncomingMessage, socket: Socket, head: Buffer) => void
}

/**
 * An HTTP server that limits the connections, the pipelined requests and the pieces of bodies that its clients can make it keep. When a
 * response begins, it drops what nobody has read of the body. It closes a connection after a response to a request whose body was not
 * read completely: Node would read the rest, however long it is, before the next request. All listeners are such servers, which
 * `boundaries.ts` checks.
 */
export class LimitedServer extends Server {
  readonly #pipelines: PipelineLimit

  constructor(
    { connections, trustedProxies }: Limits,
    options: Omit<ServerOptions, 'shouldUpgradeCallback'>,
    handle: RequestListener,
    upgrades?: Upgrades,
  ) {
    const isUpgrade = (request: IncomingMessage) =>
      upgrades !== undefined &&
      request.headers.upgrade === upgrades.protocol &&
      request.url === upgrades.path &&
      !hasBody(request)
    super({ headersTimeout: 10_000, connectionsCheckingInterval: 1_000, ...options, shouldUpgradeCallback: isUpgrade })
    this.#pipelines = new PipelineLimit(this)
    limitConnections(this, connections, trustedProxies)
    this.on('request', (request, response) => {
      this.#pipelines.add(request, response)
      // Node drops what it has read behind a request for an upgrade that it ignores, and would parse the rest as the next request.
      if (request.headers.upgrade !== undefined) this.#closeAfter(request, response)
      if (hasBody(request)) {
        limitPieces(request)
        this.#closeAfterUnread(request, response)
      }
      handle(request, response)
    })
    this.on('upgrade', (request: IncomingMessage, socket: Socket, head: Buffer) => {
      detachUpgrade(socket)
      if (upgrades && !this.isPending(socket)) upgrades.open(request, socket, head)
      else socket.destroy()
    })
  }

  /** Whether a connection has a request without a complete response. */
  isPending(socket: Duplex): boolean {
    return this.#pipelines.isPending(socket)
  }

  #closeAfter({ socket }: IncomingMessage, response: ServerResponse): void {
    response.setHeader('Connection', 'close')
    this.#pipelines.end(socket)
  }

  /** Closes the connection after the response if a part of the body has not arrived when it begins. */
  #closeAfterUnread(request: IncomingMessage, response: ServerResponse): void {
    // Express replaces the prototype of a response, so this is a property of its own.
    response.writeHead = new Proxy(response.writeHead, {
      apply: (writeHead, _, args) => {
        if (!request.complete) {
          this.#closeAfter(request, response)
          linger(request)
        }
        // Nobody has read the body. It would be kept until the client has read the response.
        if (request.readableFlowing === null) request.resume()
        return Reflect.apply(writeHead, response, args)
      },
    })
  }
}

/** How long a client may go on sending after a response that closes its connection, and how much: as much as any of our limits. */
const lingerMs = 2_000
const lingerBytes = 16 * 2 ** 20

/**
 * Closes only the sending side of a connection after the response. If the client still sends its body when a socket is closed, the
 * operating system resets the connection, and the client may lose the response (RFC 9112, section 9.6).
 */
function linger(request: IncomingMessage): void {
  const { socket } = request
  const endBytes = socket.bytesRead + lingerBytes
  const drop = () => {
    if (socket.bytesRead > endBytes) socket.destroy()
  }
  // Until the client has read the response.
  request.on('data', drop)
  // Node calls it after the last response of a connection, and reads on.
  socket.destroySoon = () => {
    socket.end()
    const timer = setTimeout(() => socket.destroy(), lingerMs)
    socket.once('close', () => clearTimeout(timer))
    // The parser gets none of the rest, whose chunks may have a byte each.
    socket.removeAllListeners('data')
    socket.on('data', drop)
  }
}
