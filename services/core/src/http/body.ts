import type { IncomingMessage } from 'node:http'
import { TRPCError } from '@trpc/server'

/** Reads the body of a request. @throws TRPCError PAYLOAD_TOO_LARGE; CLIENT_CLOSED_REQUEST if the caller disconnects */
export async function readBody(request: IncomingMessage, limitBytes: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > limitBytes)
        throw new TRPCError({ code: 'PAYLOAD_TOO_LARGE', message: `a request may have at most ${limitBytes} bytes` })
      chunks.push(chunk)
    }
  } catch (cause) {
    throw cause instanceof TRPCError ? cause : new TRPCError({ code: 'CLIENT_CLOSED_REQUEST', cause })
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}
