import { type Rate, type Tally, take } from './rate.ts'

/** In-memory token buckets of one rate, by name. */
export class Buckets {
  readonly #rate: Omit<Rate, 'name'>
  /** When each bucket is full again, in microseconds; least recently used first. */
  readonly #fullAt = new Map<string, number>()

  constructor(rate: Omit<Rate, 'name'>) {
    this.#rate = rate
  }

  /** Takes one from a bucket. @param nowMs the same clock for every call */
  take(name: string, nowMs: number): Tally {
    const nowMicros = nowMs * 1000
    const { fullAt, ...tally } = take(this.#rate, this.#fullAt.get(name) ?? 0, nowMicros)
    this.#fullAt.delete(name)
    this.#fullAt.set(name, fullAt)
    // A full bucket is the same as none.
    for (const [oldest, oldestFullAt] of this.#fullAt) {
      if (oldestFullAt > nowMicros) break
      this.#fullAt.delete(oldest)
    }
    return tally
  }
}
