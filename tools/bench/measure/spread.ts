import { median } from './rounds.ts'

/** The values of all rounds with their median, lowest and highest, to three significant digits. */
export type Spread = { median: number; low: number; high: number; rounds: number[] }

export function spreadOf(values: number[]): Spread {
  const rounds = values.map(rounded)
  return { median: rounded(median(values)), low: Math.min(...rounds), high: Math.max(...rounds), rounds }
}

/** The median, then the lowest and the highest round. */
export function textOfSpread({ median, low, high, rounds }: Spread): string {
  return rounds.length === 1 ? `${median}` : `${median} (${low} to ${high})`
}

/** Rounded to three significant digits. */
export function rounded(value: number): number {
  return Number(value.toPrecision(3))
}
