import type { IncomingMessage } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'

/** How long a client may take to send its body. */
const bodyDeadlineMs = 10_000

/**
 * The exact bytes of a body, as sent: nothing is decoded. Not a step of section 5.3; it stands between 4 and 5, so
 * that nobody without a usable key makes us read.
 *
 * @throws DomainError S013 over the limit, S012 when it does not arrive
 */
export function readRawBody(request: IncomingMessage, limitBytes: number): Buffer | Promise<Buffer> {
  const declared = request.headers['content-length']
  if (request.headers['transfer-encoding'] === undefined && (declared === undefined || declared === '0')) return noBody
  if (Number(declared) > limitBytes) throw new DomainError('S013', { limitBytes })
  return receive(request, limitBytes)
}

const noBody = Buffer.alloc(0)

function receive(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
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
  // Ends a wait for a client that has gone; after a whole body there is nothing to end.
  request.on('close', () => {
    if (!request.complete) tooSlow()
  })
  return promise.finally(() => clearTimeout(timer))
}
