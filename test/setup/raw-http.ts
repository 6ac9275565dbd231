/** HTTP byte by byte, for what no HTTP client sends. */
import { connect, type Socket } from 'node:net'

/** @param allowHalfOpen keeps our side open when the server closes its own */
export function openConnection(url: string, allowHalfOpen = false): Promise<Socket> {
  const { hostname, port } = new URL(url)
  return new Promise((resolve, reject) => {
    const socket = connect({ host: hostname, port: Number(port), allowHalfOpen }, () => resolve(socket))
    // A server may reset a connection that it has answered.
    socket.on('error', reject)
  })
}

/** Everything that arrives until the server ends the connection. */
export function received(socket: Socket): Promise<string> {
  return new Promise(resolve => {
    let text = ''
    // Characters may arrive in pieces.
    socket.setEncoding('utf8').on('data', chunk => (text += chunk))
    for (const end of ['end', 'close'] as const) socket.on(end, () => resolve(text))
  })
}

/** Sends bytes on a new connection, and returns what arrives until the server ends it. */
export async function exchange(url: string, bytes: string): Promise<string> {
  const socket = await openConnection(url)
  const answer = received(socket)
  socket.write(bytes)
  return answer
}

/** A request as text: request line, headers, and the body when there is one. */
export function requestText(
  method: string,
  target: string,
  headers: Record<string, string>,
  lines: string[] = [],
  body = '',
): string {
  const named = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  return `${method} ${target} HTTP/1.1\r\n${['Host: x', ...named, ...lines].join('\r\n')}\r\n\r\n${body}`
}
