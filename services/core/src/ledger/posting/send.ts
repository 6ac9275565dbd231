import type { Socket } from 'node:net'
import type { Client, ClientBase } from 'pg'

/**
 * Sends all statements that `send` starts in one write: each write to a socket costs more than most statements. pg has
 * no public way to do so (see docs/decisions/0017-libraries.md).
 */
export function inOneWrite<Sent>(client: ClientBase, send: () => Sent): Sent {
  const { stream } = (client as unknown as Client).connection as unknown as { stream: Socket }
  stream.cork()
  try {
    return send()
  } finally {
    stream.uncork()
  }
}
