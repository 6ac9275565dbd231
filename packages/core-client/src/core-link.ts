import type { Socket } from 'node:net'
import { type BatchPart, unpackBatch } from '@workspace-wallet/contract'
import { type FrameHead, FrameReader, frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import { countInMessagePack, TooManyValues } from '@workspace-wallet/runtime/count-in-message-pack'
import { type AnswerLimits, maxRejectionBytes, messagePackLimits } from './answer-limits.ts'
import { CoreRejected, NoAnswerError } from './errors.ts'
import type { Exchange } from './exchange.ts'
import { connectionLost, foreignAnswer, tooLongAnswer } from './request-failures.ts'

/** How much may wait for a core that does not read, although it answers pings. */
const maxUnsentBytes = 64 * 1024 * 1024
/**
 * After this many bytes of answers, other connections have a turn. Node reads up to 2 MiB of a connection before it turns to others,
 * and a gateway takes milliseconds for 100 KiB: to decode them, and to make a response of them.
 */
const bytesPerTurn = 64 * 1024
/** After this many ticks without a byte, a connection is checked with a ping: with exchanges, and without. */
const [busyPingTicks, idlePingTicks] = [4, 40]
/** After this many ticks without a byte, a connection without exchanges is closed. */
const lostTicks = 48

/** A connection that carries batches to a core, and their answers back in any order. */
export class CoreLink {
  /** Whether it takes exchanges. */
  isOpen = true
  /** For how many ticks no byte has arrived. */
  silentTicks = 0
  readonly #url: string
  readonly #socket: Socket
  readonly #limits: AnswerLimits
  readonly #exchanges = new Map<number, Exchange>()
  readonly #reader = new FrameReader({
    onHead: head => this.#onHead(head),
    onFrame: (head, body) => this.#onFrame(head, body),
  })
  #lastId = 0
  /** The bytes of answers since the last turn of the others. */
  #turnBytes = 0

  /** @param head what has arrived after the response that opened the connection */
  constructor(url: string, socket: Socket, head: Buffer, limits: AnswerLimits) {
    this.#url = url
    this.#socket = socket
    this.#limits = limits
    socket.on('error', error => this.destroy(exchange => connectionLost(url, exchange, error)))
    socket.on('close', () => this.destroy(exchange => connectionLost(url, exchange)))
    if (head.length > 0) this.#read(head)
    socket.on('data', piece => this.#read(piece))
    socket.unref()
  }

  /** Whether an exchange has no answers yet. */
  get isBusy(): boolean {
    return this.#exchanges.size > 0
  }

  get isClosed(): boolean {
    return this.#socket.destroyed
  }

  /** How many frames have arrived. */
  get frames(): number {
    return this.#reader.frames
  }

  send(exchange: Exchange): void {
    // A connection without exchanges does not keep the program running.
    if (!this.isBusy) {
      this.#socket.ref()
      this.silentTicks = 0
    }
    this.#lastId = (this.#lastId + 1) % 2 ** 32
    exchange.link = this
    exchange.id = this.#lastId
    exchange.framesBefore = this.frames
    exchange.left = { ...this.#limits }
    this.#exchanges.set(exchange.id, exchange)
    this.#socket.write(packFrame(frameKinds.batch, exchange.id, exchange.batch.body))
  }

  /** Forgets an exchange that is settled. Later answers are ignored. */
  forget({ id }: Exchange): void {
    this.#exchanges.delete(id)
    if (this.isBusy) return
    this.#socket.unref()
    if (!this.isOpen) this.#socket.destroySoon()
  }

  /** Takes no further exchanges, and ends the connection when all have answers. */
  end(): void {
    this.isOpen = false
    if (!this.isBusy) this.#socket.destroySoon()
  }

  /** Closes the connection. @param failure the error of each exchange without answers */
  destroy(failure: (exchange: Exchange) => NoAnswerError): void {
    this.isOpen = false
    this.#reader.pause()
    this.#socket.destroy()
    for (const exchange of this.#exchanges.values()) exchange.fail(failure(exchange))
  }

  /** Call it every `tickMs`. */
  tick(): void {
    this.silentTicks++
    // A server that does not read, or never ends its side, must not keep connections.
    if (!this.isOpen && !this.isBusy) this.#socket.destroy()
    else if (this.#socket.writableLength > maxUnsentBytes) this.destroy(exchange => connectionLost(this.#url, exchange))
    else if (this.silentTicks === (this.isBusy ? busyPingTicks : idlePingTicks))
      this.#socket.write(packFrame(frameKinds.ping))
    else if (this.silentTicks >= lostTicks && !this.isBusy) this.#socket.destroy()
  }

  #read(piece: Buffer): void {
    this.silentTicks = 0
    this.#reader.push(piece)
  }

  #onHead({ kind, id, bytes }: FrameHead): boolean {
    const isAnswer = kind === frameKinds.answers || kind === frameKinds.part || kind === frameKinds.rejection
    const left = this.#exchanges.get(id)?.left ?? this.#limits
    if (kind === frameKinds.drain) this.end()
    else if (!isAnswer && kind !== frameKinds.pong) this.destroy(exchange => foreignAnswer(this.#url, exchange))
    else if (bytes > (kind === frameKinds.rejection ? maxRejectionBytes : left.bytes))
      this.destroy(exchange => tooLongAnswer(this.#url, exchange))
    return isAnswer && this.#exchanges.has(id)
  }

  #onFrame({ kind, id }: FrameHead, body: Buffer): void {
    const exchange = this.#exchanges.get(id)
    // It was given up while its answers arrived.
    if (!exchange) return
    this.#turnBytes += body.length
    if (this.#turnBytes >= bytesPerTurn) this.#giveTurn()
    if (kind === frameKinds.rejection) exchange.fail(this.#rejectionIn(body, exchange))
    else this.#takeAnswers(kind === frameKinds.part, body, exchange)
  }

  /** Reads on in the next turn of the event loop. */
  #giveTurn(): void {
    this.#turnBytes = 0
    this.#reader.pause()
    this.#socket.pause()
    setImmediate(() => {
      if (!this.#socket.destroyed && this.#reader.resume()) this.#socket.resume()
    })
  }

  #rejectionIn(body: Buffer, exchange: Exchange): NoAnswerError {
    const status = statusIn(body)
    if (status === null) return foreignAnswer(this.#url, exchange)
    return new CoreRejected(this.#url, status, '', exchange.sentAtMs)
  }

  #takeAnswers(isPart: boolean, body: Buffer, exchange: Exchange): void {
    const answers = this.#decode(body, exchange)
    if (answers instanceof NoAnswerError) exchange.fail(answers)
    else if (!isPart && Array.isArray(answers)) exchange.takeRest(answers)
    else if (!isPart || !isBatchPart(answers) || !exchange.takePart(answers))
      exchange.fail(foreignAnswer(this.#url, exchange))
  }

  #decode(body: Buffer, exchange: Exchange): unknown {
    try {
      exchange.left.bytes -= body.length
      exchange.left.values -= countInMessagePack(body, messagePackLimits(exchange.left))
      return unpackBatch(body)
    } catch (error) {
      const failure = error instanceof TooManyValues ? tooLongAnswer : foreignAnswer
      return failure(this.#url, exchange)
    }
  }
}

function isBatchPart(value: unknown): value is { [Key in keyof BatchPart]: unknown[] } {
  const { calls, answers } = (value ?? {}) as Partial<Record<keyof BatchPart, unknown>>
  return Array.isArray(calls) && Array.isArray(answers)
}

/**
 * The HTTP status of a rejection; null if it is none of an error, so that it is not from core, and says nothing about the calls. Nothing
 * else of it is used, because a server may echo the token.
 */
function statusIn(body: Buffer): number | null {
  try {
    const { status } = JSON.parse(body.toString()) as { status?: unknown }
    return Number.isInteger(status) && Number(status) >= 400 && Number(status) < 600 ? Number(status) : null
  } catch {
    return null
  }
}
