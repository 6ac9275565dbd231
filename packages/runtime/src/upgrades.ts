import { STATUS_CODES } from 'node:http'
import type { Socket } from 'node:net'

/** Takes over the connection of a request for an upgrade, which no time-out or listener of the HTTP server watches any more. */
export function detachUpgrade(socket: Socket): void {
  socket.on('error', () => socket.destroy())
  // That of an earlier request.
  socket.setTimeout(0)
}

export function acceptUpgrade(socket: Socket, protocol: string): void {
  socket.write(`HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n\r\n`)
}

/** Answers a request for an upgrade, for which Node makes no response. @param body JSON */
export function refuseUpgrade(socket: Socket, status: number, body: string): void {
  const lines = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status] ?? ''}`,
    'Cache-Control: no-store',
    'Connection: close',
    'Content-Type: application/json',
    `Content-Length: ${Buffer.byteLength(body)}`,
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n${body}`)
  // Nothing else watches the connection, whose client may never end its side.
  socket.destroySoon()
}
