import { type Rate, type Tally, take } from './rate.ts'

/** Buckets of one rate in memory, by name. */
export class Buckets {
  readonly #rate: Rate
  /** When each bucket is full again, in microseconds; those that were taken from last stand last. */
  readonly #fullAt = new Map<string, number>()

  constructor(rate: Rate) {
    this.#rate = rate
  }

  /** @param nowMs any clock, the same one for every call */
  take(name: string, nowMs: number): Tally {
    const nowMicros = nowMs * 1000
    const { fullAt, ...tally } = take(this.#rate, this.#fullAt.get(name) ?? 0, nowMicros)
    this.#fullAt.delete(name)
    this.#fullAt.set(name, fullAt)
    // A bucket that is full again need not be kept.
    for (const [oldest, oldestFullAt] of this.#fullAt) {
      if (oldestFullAt > nowMicros) break
      this.#fullAt.delete(oldest)
    }
    return tally
  }
}
