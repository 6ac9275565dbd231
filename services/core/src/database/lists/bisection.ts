import type { Sequence } from './list.ts'
import { numberOf, numbersBetween } from './numbers.ts'

/**
 * Common table expressions for the first and the last of the rows (`low`, `high`, counted from 1) that were created from `from` on
 * and before `to`; no row if a time is null.
 *
 * One recursion bisects for both ends. At each step, the first row that was not created before the bound is one from low to high.
 * The look-up in the middle is a subquery, so that it cannot become a join with the whole table. OFFSET 0 keeps PostgreSQL
 * from evaluating it twice.
 */
export function bisection(name: string, sequence: Sequence, from: string, to: string): string {
  const { table, createdAt } = sequence
  const middle = numberOf(sequence, '(low + high) / 2')
  return `
${name}_search (side, bound, low, high) as (
  select side, bound, 1::bigint, total + 1 from owner, unnest(array[${from}, ${to}]) with ordinality as _ (bound, side)
  union all
  select side, bound, case when at < bound then middle + 1 else low end, case when at < bound then high else middle end
  from (
    select side, bound, low, high, (low + high) / 2 as middle,
      (select at from (select ${middle} as number offset 0) of_middle, lateral (
        select ${createdAt} as at from ${table}
        where ${numbersBetween(sequence, 'of_middle.number', 'of_middle.number')} limit 1) row) as at
    from ${name}_search where low < high offset 0) probe
),
${name} as (
  select max(low) filter (where side = 1) as low, max(low) filter (where side = 2) - 1 as high
  from ${name}_search having count(*) > 0)`
}
