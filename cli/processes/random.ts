/** Repeatable random choices: the same seed gives the same sequence (mulberry32). */
export class Random {
  #state: number

  constructor(seed: number) {
    this.#state = seed >>> 0
  }

  /** A number from 0 (inclusive) to 1 (exclusive). */
  next(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(this.#state ^ (this.#state >>> 15), this.#state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }

  /** A whole number from 0 (inclusive) to `below` (exclusive). */
  int(below: number): number {
    return Math.floor(this.next() * below)
  }

  chance(share: number): boolean {
    return this.next() < share
  }

  pick<Item>(items: readonly Item[]): Item {
    return items[this.int(items.length)]!
  }

  shuffled<Item>(items: readonly Item[]): Item[] {
    return items
      .map(item => ({ item, rank: this.next() }))
      .sort((a, b) => a.rank - b.rank)
      .map(({ item }) => item)
  }

  text(alphabet: string, maxLength: number): string {
    const characters = [...alphabet]
    return Array.from({ length: this.int(maxLength + 1) }, () => this.pick(characters)).join('')
  }
}

/** The seed of this run: `SEED` if it is set, else a random one. Callers print it, so that the run can be repeated. */
export function chooseSeed(): number {
  return process.env.SEED ? Number(process.env.SEED) : Math.floor(Math.random() * 2 ** 32)
}
