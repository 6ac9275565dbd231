import { GatheredBytes } from './gathered-bytes.ts'

/**
 * What a connection carries that was opened for batches of calls: frames of a kind, an ID, and a body. A batch has the ID of its
 * answers, which come in any order (docs/decisions/0046).
 */
const headBytes = 9

/**
 * `batch`: calls, from a client. `part`: the responses to some calls of a batch, while others take longer. `answers`: the responses to
 * the rest, or to all. `rejection`: the reason that a batch was not begun. `ping`, answered by `pong`: whether the other side still
 * answers. `drain`: core answers what it received, and wants no more.
 */
export const frameKinds = { batch: 1, answers: 2, rejection: 3, ping: 4, pong: 5, drain: 6, part: 7 } as const
export type FrameKind = (typeof frameKinds)[keyof typeof frameKinds]

/** `bytes`: of the body. */
export type FrameHead = { kind: number; id: number; bytes: number }

const empty: Buffer = Buffer.alloc(0)

export function packFrame(kind: FrameKind, id = 0, body: Uint8Array = empty): Buffer {
  const frame = Buffer.allocUnsafe(headBytes + body.length)
  frame[0] = kind
  frame.writeUInt32BE(id, 1)
  frame.writeUInt32BE(body.length, 5)
  frame.set(body, headBytes)
  return frame
}

type FrameHandler = {
  /** Called before the body is read. False skips the body. */
  onHead(head: FrameHead): boolean
  /** Called before memory is taken for the body, with all that it will take. False skips the rest of the body. */
  onGrowth?(bytes: number): boolean
  onFrame(head: FrameHead, body: Buffer): void
}

/**
 * Splits what arrives into frames. A body that arrives in several pieces is copied into one buffer, which grows with it: neither a
 * length that is only announced nor tiny pieces take memory.
 */
export class FrameReader {
  readonly #handler: FrameHandler
  /** The part of a head that has arrived. */
  readonly #partialHead = Buffer.alloc(headBytes)
  #partialHeadBytes = 0
  #head: FrameHead | null = null
  readonly #body = new GatheredBytes()
  #bodyBytes = 0
  #isSkipping = false
  #isPaused = false
  #rest = empty
  /** How many frames have arrived, skipped ones included. */
  frames = 0

  constructor(handler: FrameHandler) {
    this.#handler = handler
  }

  /** Whether a frame has arrived in part. */
  get isInFrame(): boolean {
    return this.#head !== null || this.#partialHeadBytes > 0
  }

  /** Whether the rest of a body is dropped. */
  get isSkipping(): boolean {
    return this.#isSkipping
  }

  /** How many bytes arrived while this reader was paused, and are kept until `resume`. */
  get keptBytes(): number {
    return this.#rest.length
  }

  /** Call it again only after `resume`, if this reader was paused meanwhile. */
  push(piece: Buffer): void {
    let at = 0
    while (at < piece.length && !this.#isPaused) at = this.#head ? this.#readBody(piece, at) : this.#readHead(piece, at)
    if (at < piece.length) this.#rest = piece.subarray(at)
  }

  /** Keeps what arrives until `resume`. */
  pause(): void {
    this.#isPaused = true
  }

  /** Returns whether all that was kept has been read. If not, it is paused again. */
  resume(): boolean {
    this.#isPaused = false
    const rest = this.#rest
    this.#rest = empty
    this.push(rest)
    return !this.#isPaused
  }

  /** Drops the body that is arriving. */
  skipBody(): void {
    this.#isSkipping = true
    this.#body.take()
  }

  #readHead(piece: Buffer, at: number): number {
    const end = Math.min(piece.length, at + headBytes - this.#partialHeadBytes)
    if (end - at === headBytes) this.#begin(piece, at)
    else {
      piece.copy(this.#partialHead, this.#partialHeadBytes, at, end)
      this.#partialHeadBytes += end - at
      if (this.#partialHeadBytes === headBytes) this.#begin(this.#partialHead, 0)
    }
    return end
  }

  #begin(bytes: Buffer, at: number): void {
    const head = { kind: bytes[at]!, id: bytes.readUInt32BE(at + 1), bytes: bytes.readUInt32BE(at + 5) }
    this.#partialHeadBytes = 0
    this.#head = head
    this.#isSkipping = !this.#handler.onHead(head)
    if (head.bytes === 0) this.#end(head)
  }

  #readBody(piece: Buffer, at: number): number {
    const head = this.#head!
    const end = Math.min(piece.length, at + head.bytes - this.#bodyBytes)
    if (!this.#isSkipping) this.#append(head, piece.subarray(at, end))
    this.#bodyBytes += end - at
    if (this.#bodyBytes === head.bytes) this.#end(head)
    return end
  }

  #append(head: FrameHead, piece: Buffer): void {
    const capacity = this.#body.capacityFor(piece.length, head.bytes)
    if (capacity > this.#body.capacity && this.#handler.onGrowth?.(capacity) === false) this.skipBody()
    else this.#body.append(piece, capacity)
  }

  #end(head: FrameHead): void {
    const body = this.#body.take()
    const isSkipped = this.#isSkipping
    this.#head = null
    this.#bodyBytes = 0
    this.#isSkipping = false
    this.frames++
    if (!isSkipped) this.#handler.onFrame(head, body)
  }
}
