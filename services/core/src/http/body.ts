import type { IncomingMessage } from 'node:http'
import { TRPCError } from '@trpc/server'

/** @throws TRPCError PAYLOAD_TOO_LARGE; CLIENT_CLOSED_REQUEST when the caller goes away in the middle */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > limitBytes)
        throw new TRPCError({ code: 'PAYLOAD_TOO_LARGE', message: `a request is ${limitBytes} bytes at most` })
      chunks.push(chunk)
    }
  } catch (cause) {
    throw cause instanceof TRPCError ? cause : new TRPCError({ code: 'CLIENT_CLOSED_REQUEST', cause })
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}
