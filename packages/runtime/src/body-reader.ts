import type { IncomingMessage } from 'node:http'
import { getHeapStatistics } from 'node:v8'
import type { BodyMemory } from './body-memory.ts'
import { GatheredBytes } from './gathered-bytes.ts'

declare module 'http' {
  interface IncomingMessage {
    /** Sends the status 100 to a client that waits for it before it sends its body (Expect: 100-continue). */
    inviteBody?: () => void
    /** Set once the body has arrived in too many small pieces. The event `tooManyPieces` says so as well. */
    hasTooManyPieces?: boolean
  }
}

const mebibyte = 2 ** 20
/** The default memory for bodies: an eighth of the largest heap that this process may have, from 16 to 128 MiB. */
export const defaultBodyMemoryBytes = Math.min(
  128 * mebibyte,
  Math.max(16 * mebibyte, Math.floor(getHeapStatistics().heap_size_limit / 8)),
)

/**
 * Pieces of a body that may have any size, and the mean size of all further ones. Each chunk of a chunked body is a piece, and
 * each packet: whatever its size, it costs a microsecond, and a hundred bytes until it is copied.
 */
const freePieces = 1024
const pieceBytes = 64
/** Pieces from this size are kept as they are until somebody reads the body. */
const largePieceBytes = 4096
/** From this size on, what waits to be read keeps Node from reading more of the connection. It has read up to 64 KiB at once. */
const waitingBytes = 4096

/** How much longer a body may take if this process did not run at its deadline. */
const graceMs = 1_000

export function hasBody({ headers }: IncomingMessage): boolean {
  const length = headers['content-length']
  return headers['transfer-encoding'] !== undefined || (length !== undefined && length !== '0')
}

/**
 * Drops the body of a request from where it has arrived in too many small pieces, and reads no further. Until somebody reads it, gathers
 * consecutive small pieces in one buffer: Node would keep each for itself. Drops the trailers too. Call it before any of the body has arrived.
 */
export function limitPieces(request: IncomingMessage): void {
  const { push, _read } = request
  let pieces = 0
  let bytes = 0
  const unread = new GatheredBytes()
  const pushUnread = () => {
    if (unread.length > 0) push.call(request, unread.take())
  }
  request._read = size => {
    pushUnread()
    _read.call(request, size)
  }
  // Node's HTTP parser pushes each piece. False makes it stop reading from the socket.
  request.push = (piece: Buffer | null) => {
    if (piece === null) {
      pushUnread()
      // Nothing uses trailers, and Node would keep them until the response is complete.
      request.rawTrailers = []
      request.trailers = {}
      return push.call(request, null)
    }
    if (request.hasTooManyPieces) return false
    bytes += piece.length
    if (++pieces > freePieces + bytes / pieceBytes) {
      request.hasTooManyPieces = true
      request.emit('tooManyPieces')
      return false
    }
    if (request.readableFlowing !== null) return push.call(request, piece)
    if (piece.length >= largePieceBytes) {
      // Gathering it too would need another buffer of twice the size, and the outgrown ones stay until the next garbage collection.
      pushUnread()
      push.call(request, piece)
    } else {
      // Most bodies are one piece, which is not copied.
      unread.append(piece, unread.length === 0 ? piece.length : unread.capacityFor(piece.length))
    }
    return request.readableLength + unread.length < waitingBytes
  }
}

/** Why a body was not read. `TOO_SLOW`: also if the client disconnected. `NO_MEMORY`: it gave way to other bodies. */
export type BodyFault = 'TOO_LARGE' | 'TOO_MANY_PIECES' | 'TOO_SLOW' | 'NO_MEMORY'

export class BodyError extends Error {
  readonly fault: BodyFault

  constructor(fault: BodyFault) {
    super(`a body was not read: ${fault}`)
    this.fault = fault
  }
}

/** `release`: call it when neither the bytes nor what was decoded from them is used any more. */
export type Body = { bytes: Buffer; release: () => void }

export type ReadOptions = {
  limitBytes: number
  /** Who shares the memory with others: an address, or a token. */
  sender: string
  /** How much memory a body takes that has arrived, if more than its bytes. What it throws rejects the body. */
  weigh?: (bytes: Buffer) => number
}

/** Reads the bodies of requests, as sent and without decoding, within the memory for them. */
export class BodyReader {
  readonly #memory: BodyMemory
  readonly #deadlineMs: number

  constructor({ memory, deadlineMs }: { memory: BodyMemory; deadlineMs: number }) {
    this.#memory = memory
    this.#deadlineMs = deadlineMs
  }

  /** Bytes of all bodies that are arriving or not released yet. */
  get usedBytes(): number {
    return this.#memory.usedBytes
  }

  /**
   * Reads a body into one buffer, which grows with it.
   *
   * @throws BodyError
   */
  async read(request: IncomingMessage, { limitBytes, sender, weigh }: ReadOptions): Promise<Body> {
    const length = request.headers['content-length']
    const announcedBytes = length === undefined ? limitBytes : Number(length)
    if (announcedBytes > limitBytes) throw new BodyError('TOO_LARGE')
    if (request.hasTooManyPieces) throw new BodyError('TOO_MANY_PIECES')
    // It emits no further event, so that its memory would be held until the deadline.
    if (request.destroyed && !request.complete) throw new BodyError('TOO_SLOW')
    const { promise: arrival, resolve: arrive, reject } = Promise.withResolvers<void>()
    const fail = (fault: BodyFault) => {
      request.off('data', append)
      // The other listeners would keep it for as long as the connection lasts.
      gathered.take()
      reject(new BodyError(fault))
    }
    const share = this.#memory.begin(sender, () => fail('NO_MEMORY'))
    const gathered = new GatheredBytes()
    const append = (piece: Buffer) => {
      if (gathered.length + piece.length > limitBytes) return fail('TOO_LARGE')
      const capacity = gathered.capacityFor(piece.length, announcedBytes)
      if (capacity > gathered.capacity && !this.#memory.resize(share, capacity)) return
      gathered.append(piece, capacity)
    }
    const startedAtMs = performance.now()
    let timer = setTimeout(() => {
      const lateMs = performance.now() - startedAtMs - this.#deadlineMs
      if (lateMs < graceMs) fail('TOO_SLOW')
      // This process was frozen, and reads what arrived meanwhile after its timers.
      else timer = setTimeout(() => fail('TOO_SLOW'), graceMs)
    }, this.#deadlineMs)
    request.inviteBody?.()
    request.on('data', append)
    request.on('end', arrive)
    request.on('close', () => {
      if (!request.complete) fail('TOO_SLOW')
    })
    request.on('tooManyPieces', () => fail('TOO_MANY_PIECES'))
    const release = () => this.#memory.release(share)
    try {
      await arrival
      // The listeners would keep it until the response is sent, also after it is released.
      const received = gathered.take()
      if (!this.#memory.resize(share, weigh?.(received) ?? share.bytes)) throw new BodyError('NO_MEMORY')
      this.#memory.complete(share)
      return { bytes: received, release }
    } catch (error) {
      release()
      throw error
    } finally {
      clearTimeout(timer)
    }
  }
}
