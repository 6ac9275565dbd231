import type { IncomingMessage } from 'node:http'
import { TRPCError } from '@trpc/server'
import { type Body, BodyError, BodyMemory, BodyReader, type BodyShare, Rotation } from '@workspace-wallet/runtime'
import { nameOfToken } from '../places/places.ts'
import type { CallerToken } from '../trpc/service-token.ts'
import { bodyLimits, countInBatch, countInJsonBody } from './body-limits.ts'

/** How long a caller may take to send a body. */
const deadlineMs = 10_000
/** What a decoded value takes in memory on average. */
const elementBytes = 100
/** What a batch takes besides, while it is in progress. */
const batchBytes = 1024
/** How many bodies of a token may wait when a request without a body arrives, which takes no memory. */
const waitingLimit = 64

/** Reads the bodies of calls. Service tokens share the memory for bodies and for the values in them, and the event loop. */
export class CallBodies {
  readonly #memory: BodyMemory
  readonly #reader: BodyReader
  readonly #rotation = new Rotation()
  /** Pings wait for other pings only: without a pong, a client takes its connection for lost, however much its token has to decode. */
  readonly #pings = new Rotation()

  /** @param memoryBytes for all bodies, from their first byte until their calls are answered */
  constructor(memoryBytes: number) {
    this.#memory = new BodyMemory(memoryBytes)
    this.#reader = new BodyReader({ memory: this.#memory, deadlineMs })
  }

  get usedBytes(): number {
    return this.#memory.usedBytes
  }

  /** Begins the body of a batch, which takes nothing yet. Release it when neither it nor what was decoded is used any more. */
  begin(token: CallerToken, onEvicted: () => void): BodyShare {
    return this.#memory.begin(nameOfToken(token), onEvicted)
  }

  /** Sets how much the arriving body of a batch takes. Returns false if it has given way to others. */
  resize(share: BodyShare, bytes: number): boolean {
    return this.#memory.resize(share, bytes + batchBytes)
  }

  /**
   * Waits until the calls of a request without a body may be made, as for one with a body.
   *
   * @throws TRPCError SERVICE_UNAVAILABLE if many of this token wait
   */
  turn(token: CallerToken, connection: object): Promise<void> | undefined {
    const sender = nameOfToken(token)
    if (this.#rotation.waitingOf(sender) >= waitingLimit) throw noMemory()
    return this.#rotation.next(sender, connection)
  }

  release(share: BodyShare): void {
    this.#memory.release(share)
  }

  /** Waits for another turn after something else that a body has waited for, which may be there for many bodies at once. */
  anotherTurn(token: CallerToken, connection: object): Promise<void> | undefined {
    return this.#rotation.next(nameOfToken(token), connection)
  }

  /** Waits until a ping may be answered. */
  pingTurn(token: CallerToken, connection: object): Promise<void> | undefined {
    return this.#pings.next(nameOfToken(token), connection)
  }

  /**
   * Counts the values in the body of a batch that has arrived, and waits until it may be decoded, or rejected: that takes as long as
   * decoding a small one.
   *
   * @throws TRPCError PAYLOAD_TOO_LARGE; BAD_REQUEST; SERVICE_UNAVAILABLE if the memory for bodies is used up
   */
  async admit(share: BodyShare, token: CallerToken, bytes: Buffer, connection: object): Promise<void> {
    try {
      const elements = countInBatch(bytes, bodyLimits[token.role].elements)
      if (!this.resize(share, bytes.length + elements * elementBytes)) throw noMemory()
      this.#memory.complete(share)
    } finally {
      await this.#rotation.next(nameOfToken(token), connection)
    }
  }

  /**
   * Reads a body of JSON, and waits until it may be decoded.
   *
   * @throws TRPCError PAYLOAD_TOO_LARGE; SERVICE_UNAVAILABLE if the memory for bodies is used up; CLIENT_CLOSED_REQUEST if the
   *   body does not arrive in time
   */
  async read(request: IncomingMessage, token: CallerToken): Promise<Body> {
    const limits = bodyLimits[token.role]
    const sender = nameOfToken(token)
    const weigh = (bytes: Buffer) => bytes.length + countInJsonBody(bytes, limits.elements) * elementBytes
    const body = await this.#reader.read(request, { limitBytes: limits.bytes, sender, weigh }).catch(cause => {
      throw cause instanceof BodyError ? errorOf(cause, limits.bytes) : cause
    })
    await this.#rotation.next(sender, request.socket)
    return body
  }
}

function errorOf({ fault }: BodyError, limitBytes: number): TRPCError {
  if (fault === 'TOO_LARGE') return tooManyBytes(limitBytes)
  if (fault === 'TOO_MANY_PIECES') return tooLarge('the request arrives in too many small pieces')
  if (fault === 'NO_MEMORY') return noMemory()
  return new TRPCError({ code: 'CLIENT_CLOSED_REQUEST', message: 'the request did not arrive in time' })
}

export function tooManyBytes(limitBytes: number): TRPCError {
  return tooLarge(`a request with this service token may have at most ${limitBytes} bytes`)
}

export function noMemory(): TRPCError {
  return new TRPCError({ code: 'SERVICE_UNAVAILABLE', message: 'too many requests are arriving: retry later' })
}

function tooLarge(message: string): TRPCError {
  return new TRPCError({ code: 'PAYLOAD_TOO_LARGE', message })
}
