/** Capacity of the first buffer that several pieces are copied into: little, because few bytes may stay in it. */
const firstBytes = 256

const empty: Buffer = Buffer.alloc(0)

/** Bytes that arrive in pieces, in one buffer that grows with them. */
export class GatheredBytes {
  #buffer = empty
  #length = 0

  get length(): number {
    return this.#length
  }

  /** Of the buffer, in bytes. */
  get capacity(): number {
    return this.#buffer.length
  }

  /** The capacity for so many further bytes: at least twice the present one if that is too small, and at most `limitBytes`. */
  capacityFor(bytes: number, limitBytes = Number.POSITIVE_INFINITY): number {
    const needed = this.#length + bytes
    if (needed <= this.capacity) return this.capacity
    return Math.min(limitBytes, Math.max(needed, 2 * this.capacity, firstBytes))
  }

  /** @param capacity at least what all bytes need. A piece that fills it is not copied */
  append(piece: Buffer, capacity: number): void {
    if (capacity > this.capacity) {
      const larger = piece.length === capacity ? piece : Buffer.allocUnsafeSlow(capacity)
      this.#buffer.copy(larger, 0, 0, this.#length)
      this.#buffer = larger
    }
    if (this.#buffer !== piece) piece.copy(this.#buffer, this.#length)
    this.#length += piece.length
  }

  /** What has arrived, which is not kept any longer. */
  take(): Buffer {
    const taken = this.#buffer.subarray(0, this.#length)
    this.#buffer = empty
    this.#length = 0
    return taken
  }
}
