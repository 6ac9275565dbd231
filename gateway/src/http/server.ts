import type { RequestListener, Server, ServerOptions } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { DomainError } from '@workspace-wallet/contract'
import { LimitedServer, type Limits } from '@workspace-wallet/runtime'
import type { Express, Request, Response } from 'express'
import { failureBody, mintRequestId, sendFailure } from './envelope.ts'
import { Stalls } from './stalls.ts'

/**
 * How long nothing may be sent or received during a request: longer than the gateway takes to answer. Node closes the connection
 * after once or twice this time.
 */
const stalledMs = 20_000

/** How much longer a request may take whose deadline passed while this process was frozen. */
const graceMs = 1_000

const options: ServerOptions = {
  keepAliveTimeout: 65_000,
  requestTimeout: 20_000,
}

/**
 * An HTTP server that answers everything with our envelope, even if it is not valid HTTP, and limits requests in time and
 * number.
 */
export function createGuardedServer(app: Express, limits: Limits): Server {
  /** Connections that get this time. */
  const late = new WeakMap<Duplex, NodeJS.Timeout>()

  const handle: RequestListener = (request, response) => {
    clearTimeout(late.get(request.socket))
    // Express finds no path in some targets, such as `http://[x/`, and calls no handler of ours.
    app(request as Request, response as Response, () => {
      response.setHeader('Connection', 'close')
      sendFailure(request, response, mintRequestId(), notHttp('BAD_CHARACTER'))
    })
  }

  /**
   * A client must not mistake this response for that to a pending request, or, if it has opened the connection in advance, to a request that
   * it sends at this moment.
   */
  function reject(socket: Duplex, reason: Reason): void {
    if (server.isPending(socket) || (socket as Socket).bytesRead === 0) socket.destroy()
    else rejectConnection(socket, reason)
  }

  const stalls = new Stalls()
  const server = new LimitedServer(limits, options, handle)
  server.on('close', () => stalls.stop())
  // A client that does not read its responses must not keep its connection for ever.
  server.timeout = stalledMs
  // The client may send its body only after steps 1 to 4 of section 5.3 have passed.
  server.on('checkContinue', (request, response) => {
    request.inviteBody = () => response.writeContinue()
    server.emit('request', request, response)
  })
  server.on('clientError', (error: NodeJS.ErrnoException, socket) => {
    const isSlow = error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
    if (error.code === 'ECONNRESET' || !socket.writable) socket.destroy()
    else if (!isSlow) reject(socket, 'BAD_CHARACTER')
    else if (!stalls.isRecovering) reject(socket, 'TOO_SLOW')
    // The body of a pending request has a deadline of its own. Node reports a request only once.
    else if (!server.isPending(socket))
      late.set(
        socket,
        setTimeout(() => reject(socket, 'TOO_SLOW'), graceMs),
      )
  })
  server.on('connect', (_request, socket: Socket) => {
    // Node has removed its own error listener. Without one, a reset would end the process.
    socket.on('error', () => socket.destroy())
    reject(socket, 'BAD_CHARACTER')
  })
  return server
}

type Reason = 'TOO_SLOW' | 'BAD_CHARACTER'

function notHttp(reason: Reason): DomainError {
  return new DomainError('S012', { field: 'request', reason })
}

/** Answers bytes that are not a valid HTTP request, which Express never sees, and closes the connection. */
function rejectConnection(socket: Duplex, reason: Reason): void {
  const body = failureBody(notHttp(reason))
  const answer =
    'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json; charset=utf-8\r\nCache-Control: no-store\r\n' +
    `X-Request-Id: ${mintRequestId()}\r\nConnection: close\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  // A client that never closes its side would keep the socket open for ever.
  socket.end(answer, () => socket.destroy())
}
