import { createServer, type RequestListener, type Server, type ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { DomainError } from '@workspace-wallet/contract'
import type { Express } from 'express'
import { failureBody, mintRequestId } from './envelope.ts'

declare module 'http' {
  interface IncomingMessage {
    /** Sends the 100 that a client waits for before it sends its body (Expect: 100-continue). */
    inviteBody?: () => void
  }
}

/**
 * Requests of one connection that may be under way at once. One read of the socket can hold two thousand small ones,
 * and all of them would run before anybody else's turn.
 */
const pipelineLimit = 32

const options: ServerOptions = {
  keepAliveTimeout: 65_000,
  headersTimeout: 10_000,
  requestTimeout: 20_000,
  connectionsCheckingInterval: 1_000,
  // Node would refuse a request without Host by itself, without our envelope.
  requireHostHeader: false,
}

/**
 * An HTTP server that answers in our envelope whatever arrives on its connections, and keeps none longer than it must.
 */
export function createGuardedServer(app: Express): Server {
  const unanswered = new WeakMap<Duplex, number>()

  const handle: RequestListener = (request, response) => {
    const { socket } = request
    const underWay = (unanswered.get(socket) ?? 0) + 1
    if (underWay > pipelineLimit) {
      socket.destroy()
      return
    }
    unanswered.set(socket, underWay)
    response.once('close', () => unanswered.set(socket, unanswered.get(socket)! - 1))
    app(request, response)
  }

  const server = createServer(options, handle)
  // An Expect header that Node does not know is ours to answer, as any other request.
  server.on('checkExpectation', handle)
  // Nobody is invited to send a body before steps 1 to 4 have passed.
  server.on('checkContinue', (request, response) => {
    request.inviteBody = () => response.writeContinue()
    handle(request, response)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    // An earlier request of this connection may still be worked on: its client must not take this answer for that one.
    const isMuddled = (unanswered.get(socket) ?? 0) > 0
    if (error.code === 'ECONNRESET' || !socket.writable || isMuddled) socket.destroy()
    else refuse(socket, error.code === 'ERR_HTTP_REQUEST_TIMEOUT' ? 'TOO_SLOW' : 'BAD_CHARACTER')
  })
  server.on('connect', (_request, socket: Socket) => {
    // Node has taken its own listener away: without one, a reset would end the process.
    socket.on('error', () => socket.destroy())
    refuse(socket, 'BAD_CHARACTER')
  })
  return server
}

/** What is not even HTTP never reaches the application: its answer is written by hand, and the connection closed. */
function refuse(socket: Duplex, reason: 'TOO_SLOW' | 'BAD_CHARACTER'): void {
  const body = failureBody(new DomainError('S012', { field: 'request', reason }))
  const answer =
    'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\nCache-Control: no-store\r\n' +
    `X-Request-Id: ${mintRequestId()}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  // A client that never closes its side would hold the socket for ever.
  socket.end(answer, () => socket.destroy())
}
