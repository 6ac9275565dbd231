import type { Direction, Sequence } from './list.ts'

/** The number of the n-th row. */
export function numberOf({ numberOf }: Sequence, nth: string): string {
  return numberOf?.(nth) ?? nth
}

/**
 * The WHERE condition and ORDER BY for the rows of a range of numbers.
 *
 * Also for a single number: with `number = …` and no order, PostgreSQL might read all rows of the owner through another
 * index while a table has no statistics, because it is new or was just restored. With the order, any other index would need
 * a sort.
 */
export function numbersBetween(
  { where, number }: Sequence,
  low: string,
  high: string,
  direction: Direction = 'asc',
): string {
  return `${where} and ${number} between ${low} and ${high} order by ${number} ${direction}`
}
