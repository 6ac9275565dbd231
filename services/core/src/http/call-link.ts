import type { Socket } from 'node:net'
import { TRPCError } from '@trpc/server'
import type { BodyShare } from '@workspace-wallet/runtime'
import { type FrameHead, FrameReader, frameKinds, packFrame } from '@workspace-wallet/runtime/batch-frames'
import type { CallerToken } from '../trpc/service-token.ts'
import { bodyLimits } from './body-limits.ts'
import { type CallBodies, noMemory, tooManyBytes } from './call-bodies.ts'

/** Batches and pings of one connection that may be in progress. Further ones are not read until some have answers. */
const batchLimit = 128
/** A longer frame is not a batch. */
const longestFrameBytes = 16 * 1024 * 1024
/** How many ticks a frame may take to arrive. */
const arrivalTicks = 10
/** After this many ticks without a byte, core ends the connection. Clients ping more often. */
const idleTicks = 60
/** What a frame takes in memory besides its bytes while it waits to be sent. */
const waitingFrameBytes = 512
/** How many ticks a client may take to end a connection that core wants to end. */
const endTicks = 15

type LinkOptions = {
  token: CallerToken
  bodies: CallBodies
  /** Answers a batch: some calls by `onPart`, and the rest. What it throws rejects the batch. */
  answer: (body: Buffer, onPart: (part: Buffer) => void) => Promise<Buffer>
  /** The rejection that a client gets. */
  rejectionOf: (cause: unknown) => Buffer
}

/** A connection that carries batches of one caller. Answers are sent in the order in which they are ready. */
export class CallLink {
  readonly #socket: Socket
  readonly #options: LinkOptions
  readonly #reader = new FrameReader({
    onHead: head => this.#onHead(head),
    onGrowth: bytes => this.#options.bodies.resize(this.#arriving!, bytes),
    onFrame: (head, body) => this.#onFrame(head, body),
  })
  #arriving: BodyShare | undefined
  #inProgress = 0
  /** How many batches and pings wait for a turn. */
  #waiting = 0
  #isPaused = false
  #isDraining = false
  /** Whether the client sends no more. */
  #hasEnded = false
  /** How many frames wait to be sent. */
  #unsent = 0
  #framesAtTick = 0
  #ticksInFrame = 0
  #silentTicks = 0

  /** @param head what has arrived after the request that opened the connection */
  constructor(socket: Socket, head: Buffer, options: LinkOptions) {
    this.#socket = socket
    this.#options = options
    socket.on('drain', () => this.#adjustReading())
    socket.on('end', () => {
      this.#hasEnded = true
      this.#endIfDone()
    })
    socket.on('close', () => {
      this.#reader.pause()
      if (this.#arriving) options.bodies.release(this.#arriving)
      this.#arriving = undefined
    })
    if (head.length > 0) this.#read(head)
    socket.on('data', piece => this.#read(piece))
  }

  /** Asks the client to send no more. It ends the connection when it has all answers. */
  drain(): void {
    if (this.#isDraining) return
    this.#isDraining = true
    this.#send(packFrame(frameKinds.drain))
  }

  /** Memory of answers that the client has not read, and of input that core has not read, in bytes. */
  get waitingBytes(): number {
    const unsentBytes = this.#socket.writableLength + this.#unsent * waitingFrameBytes
    return unsentBytes + this.#reader.keptBytes + this.#socket.readableLength
  }

  destroy(): void {
    this.#reader.pause()
    this.#socket.destroy()
  }

  /** Call it every second. Ticks are counted, not time: if this process stalls, its clients are not blamed for it. */
  tick(): void {
    const isSameFrame = this.#reader.isInFrame && this.#reader.frames === this.#framesAtTick
    this.#framesAtTick = this.#reader.frames
    this.#ticksInFrame = isSameFrame && !this.#isPaused ? this.#ticksInFrame + 1 : 0
    this.#silentTicks = this.#inProgress > 0 ? 0 : this.#silentTicks + 1
    if (this.#ticksInFrame > arrivalTicks || this.#silentTicks > idleTicks + endTicks) this.destroy()
    else if (this.#silentTicks > idleTicks) this.drain()
  }

  #read(piece: Buffer): void {
    this.#silentTicks = 0
    this.#reader.push(piece)
    // What is dropped of a frame takes time, too.
    if (this.#reader.isSkipping) void this.#wait(this.#options.bodies.anotherTurn(this.#options.token, this))
  }

  #onHead({ kind, id, bytes }: FrameHead): boolean {
    const { token, bodies } = this.#options
    const limits = bodyLimits[token.role]
    if (kind === frameKinds.ping && bytes === 0)
      void this.#inTurn(bodies.pingTurn(token, this), () => this.#answerPing(id))
    else if (kind !== frameKinds.batch || bytes > longestFrameBytes) this.destroy()
    else if (bytes > limits.bytes) void this.#rejectInTurn(id, tooManyBytes(limits.bytes))
    else {
      this.#arriving = bodies.begin(token, () => {
        this.#arriving = undefined
        this.#reader.skipBody()
        void this.#rejectInTurn(id, noMemory())
      })
      return true
    }
    return false
  }

  #rejectInTurn(id: number, cause: TRPCError): Promise<void> {
    const { token, bodies } = this.#options
    return this.#inTurn(bodies.anotherTurn(token, this), () => this.#reject(id, cause))
  }

  /** Sends a pong or a rejection in its turn: one packet of a client can cause thousands. */
  async #inTurn(turn: Promise<void> | undefined, reply: () => void): Promise<void> {
    this.#inProgress++
    await this.#wait(turn)
    reply()
    this.#inProgress--
    this.#endIfDone()
  }

  /** Skips the pong while other frames are unsent: they will show the client that core answers, and pongs would pile up. */
  #answerPing(id: number): void {
    if (this.#socket.writableLength === 0) this.#send(packFrame(frameKinds.pong, id))
  }

  /** Reads nothing more until this is over. */
  async #wait(turn: Promise<void> | undefined): Promise<void> {
    this.#waiting++
    this.#adjustReading()
    try {
      await turn
    } finally {
      this.#waiting--
      this.#adjustReading()
    }
  }

  #onFrame({ id }: FrameHead, bytes: Buffer): void {
    const share = this.#arriving!
    this.#arriving = undefined
    this.#inProgress++
    this.#adjustReading()
    void this.#answer(id, share, bytes).finally(() => {
      this.#inProgress--
      this.#adjustReading()
      this.#endIfDone()
    })
  }

  async #answer(id: number, share: BodyShare, bytes: Buffer): Promise<void> {
    const { token, bodies, answer } = this.#options
    try {
      await this.#wait(bodies.admit(share, token, bytes, this))
      // Nobody waits for what was not begun.
      if (this.#socket.destroyed) return
      const rest = await answer(bytes, part => this.#send(packFrame(frameKinds.part, id, part)))
      this.#send(packFrame(frameKinds.answers, id, rest))
    } catch (cause) {
      this.#reject(id, cause)
    } finally {
      bodies.release(share)
    }
  }

  #reject(id: number, cause: unknown): void {
    this.#send(packFrame(frameKinds.rejection, id, this.#options.rejectionOf(cause)))
    // A caller that may no longer call at all.
    if (cause instanceof TRPCError && cause.code === 'UNAUTHORIZED') this.drain()
  }

  #send(frame: Buffer): void {
    if (!this.#socket.writable) return
    this.#unsent++
    if (!this.#socket.write(frame, this.#onSent)) this.#adjustReading()
  }

  readonly #onSent = () => {
    this.#unsent--
  }

  /**
   * Reads no further batches while enough are in progress, while one waits for its turn, or while the client does not read its answers.
   * Otherwise, whoever has a token could fill the memory and the time of core with batches that are only rejected.
   */
  #adjustReading(): void {
    const mustPause = this.#inProgress >= batchLimit || this.#waiting > 0 || this.#socket.writableNeedDrain
    // What had arrived on a connection that is closed is not read any more.
    if (mustPause === this.#isPaused || this.#socket.destroyed) return
    this.#isPaused = mustPause
    if (mustPause) {
      this.#socket.pause()
      this.#reader.pause()
    } else if (this.#reader.resume()) this.#socket.resume()
  }

  #endIfDone(): void {
    if (this.#hasEnded && this.#inProgress === 0) this.#socket.end()
  }
}
