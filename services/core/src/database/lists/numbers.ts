import type { Direction, Sequence } from './list.ts'

/**
 * The end of a query that finds the rows of a range of numbers: the condition and the order.
 *
 * A single number is such a range, too. With `number = …` the order would not matter, and PostgreSQL might choose
 * another index of the same owner and read all of the owner's rows, as long as a table has no statistics: when it is new,
 * or was restored a moment ago. Any other index would need a sort.
 */
export function numbersBetween(
  { where, number }: Sequence,
  low: string,
  high: string,
  direction: Direction = 'asc',
): string {
  return `${where} and ${number} between ${low} and ${high} order by ${number} ${direction}`
}
