import type { IncomingMessage } from 'node:http'
import { TRPCError } from '@trpc/server'
import { type Body, BodyError, BodyReader } from '@workspace-wallet/runtime'
import type { CallerToken } from '../trpc/service-token.ts'
import { bodyLimits } from './body-limits.ts'
import { BodyRotation } from './body-rotation.ts'

/** How long a caller may take to send a body. */
const deadlineMs = 10_000
/** What a decoded value takes in memory. */
const elementBytes = 100

/** Counts the values in a body before it is decoded. @throws TRPCError */
export type CountElements = (body: Uint8Array, maxElements: number) => number

/** Reads the bodies of calls. Service tokens share the memory for bodies and for the values in them, and the event loop. */
export class CallBodies {
  readonly #reader: BodyReader
  readonly #rotation = new BodyRotation()

  /** @param memoryBytes for all bodies, from their first byte until their calls are answered */
  constructor(memoryBytes: number) {
    this.#reader = new BodyReader({ memoryBytes, deadlineMs })
  }

  get usedBytes(): number {
    return this.#reader.usedBytes
  }

  /**
   * Reads a body, and waits until it may be decoded.
   *
   * @throws TRPCError PAYLOAD_TOO_LARGE; SERVICE_UNAVAILABLE if the memory for bodies is used up; CLIENT_CLOSED_REQUEST if the
   *   body does not arrive in time; what `countElements` throws
   */
  async read(
    request: IncomingMessage,
    { name, role, isOperator }: CallerToken,
    countElements: CountElements,
  ): Promise<Body> {
    const limits = bodyLimits[role]
    const sender = `${isOperator ? 'operator' : role}:${name}`
    const weigh = (bytes: Buffer) => bytes.length + countElements(bytes, limits.elements) * elementBytes
    const body = await this.#reader.read(request, { limitBytes: limits.bytes, sender, weigh }).catch(cause => {
      throw cause instanceof BodyError ? errorOf(cause, limits.bytes) : cause
    })
    await this.#rotation.next(sender)
    return body
  }
}

function errorOf({ fault }: BodyError, limitBytes: number): TRPCError {
  if (fault === 'TOO_LARGE') return tooLarge(`a request with this service token may have at most ${limitBytes} bytes`)
  if (fault === 'TOO_MANY_PIECES') return tooLarge('the request arrives in too many small pieces')
  if (fault === 'NO_MEMORY')
    return new TRPCError({ code: 'SERVICE_UNAVAILABLE', message: 'too many requests are arriving: retry later' })
  return new TRPCError({ code: 'CLIENT_CLOSED_REQUEST', message: 'the request did not arrive in time' })
}

function tooLarge(message: string): TRPCError {
  return new TRPCError({ code: 'PAYLOAD_TOO_LARGE', message })
}
