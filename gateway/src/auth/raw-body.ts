import type { IncomingMessage } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'

/** How long a client may take to send its body. */
const bodyDeadlineMs = 10_000

export const emptyBody = Buffer.alloc(0)

export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/**
 * Reads the bytes of a body as sent, without decoding. The pipeline reads it between steps 4 and 5 of section 5.3, so that
 * only requests with a usable key make the gateway read a body.
 *
 * @throws DomainError S013 if the body exceeds the limit, S012 if it does not arrive in time
 */
export async function readRawBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  if (Number(request.headers['content-length']) > limitBytes) throw new DomainError('S013', { limitBytes })
  const { promise, resolve, reject } = Promise.withResolvers<Buffer>()
  const chunks: Buffer[] = []
  let length = 0
  const tooSlow = () => reject(new DomainError('S012', { field: 'body', reason: 'TOO_SLOW' }))
  const timer = setTimeout(tooSlow, bodyDeadlineMs)
  request.inviteBody?.()
  request.on('data', (chunk: Buffer) => {
    length += chunk.length
    if (length > limitBytes) reject(new DomainError('S013', { limitBytes }))
    else chunks.push(chunk)
  })
  request.on('end', () => resolve(chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)))
  request.on('close', () => {
    // The client closed the connection before it had sent the whole body.
    if (!request.complete) tooSlow()
  })
  return promise.finally(() => clearTimeout(timer))
}
