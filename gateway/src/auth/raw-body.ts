import type { IncomingMessage } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'
import { type Body, BodyError, type BodyFault, type BodyReader, networkOf } from '@workspace-wallet/runtime'

/** How long a client may take to send its body. */
export const bodyDeadlineMs = 10_000

export const emptyBody = Buffer.alloc(0)

/**
 * Reads the bytes of a body as sent, without decoding. The pipeline reads it between steps 4 and 5 of section 5.3, so that
 * only requests with a usable key make the gateway read a body. The networks of clients share the memory for bodies.
 *
 * @throws DomainError S013 if the body exceeds the limit or arrives in too many small pieces, S012 if it does not arrive in
 *   time, S002 if the memory for bodies is used up
 */
export async function readRawBody(bodies: BodyReader, request: IncomingMessage, limitBytes: number): Promise<Body> {
  try {
    return await bodies.read(request, { limitBytes, sender: networkOf(request.clientAddress) })
  } catch (error) {
    throw error instanceof BodyError ? errorOf[error.fault](limitBytes) : error
  }
}

const errorOf: Record<BodyFault, (limitBytes: number) => DomainError> = {
  TOO_LARGE: limitBytes => new DomainError('S013', { limitBytes }),
  TOO_MANY_PIECES: () => new DomainError('S013', { reason: 'TOO_MANY_PIECES' }),
  TOO_SLOW: () => new DomainError('S012', { field: 'body', reason: 'TOO_SLOW' }),
  NO_MEMORY: () => new DomainError('S002', { retryAfterSeconds: 1 }),
}
