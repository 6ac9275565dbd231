/** Contenders alternate in several rounds, so that changes in the speed of the machine affect all of them alike. */
import type { Say } from '../../../cli/processes/say.ts'

export type Contenders<Sample> = Record<string, () => Promise<Sample>>

/**
 * Runs each contender once per round, in forward and reverse order by turns. The first round warms up compilers and
 * caches, and is discarded.
 *
 * @param rounds number of rounds that count
 */
export async function inRounds<Sample>(
  contenders: Contenders<Sample>,
  rounds: number,
  say: Say,
): Promise<Record<string, Sample[]>> {
  const names = Object.keys(contenders)
  const samples: Record<string, Sample[]> = Object.fromEntries(names.map(name => [name, []]))
  for (let round = 0; round <= rounds; round++)
    for (const name of round % 2 === 0 ? names : names.toReversed()) {
      say(`${round === 0 ? 'warm-up' : `round ${round} of ${rounds}`}: ${name}`)
      const sample = await contenders[name]!()
      if (round > 0) samples[name]!.push(sample)
    }
  return samples
}

export function median(numbers: number[]): number {
  const sorted = numbers.toSorted((a, b) => a - b)
  const middle = (sorted.length - 1) / 2
  return (sorted[Math.floor(middle)]! + sorted[Math.ceil(middle)]!) / 2
}

/** The ratio of each round: a slow round affects numerator and denominator alike. */
export function ratiosOf(numerators: number[], denominators: number[]): number[] {
  return numerators.map((numerator, round) => numerator / denominators[round]!)
}

/** Of several contenders, the ratios of the one with the largest median. */
export function largestOf(all: number[][]): number[] {
  return all.toSorted((a, b) => median(b) - median(a))[0]!
}
