import type { Sequence } from './list.ts'
import { numbersBetween } from './numbers.ts'

/**
 * The first and the last number of the rows that were created from one time on and before another; none when a time
 * is null.
 *
 * Both ends are looked for side by side: the first row that was not created before the bound has a number from low to
 * high. The look-up in the middle is a subquery, which cannot become a join of the whole table; OFFSET 0 keeps
 * PostgreSQL from doing it twice.
 */
export function bisection(name: string, sequence: Sequence, from: string, to: string): string {
  const { table, createdAt } = sequence
  return `
${name}_search (side, bound, low, high) as (
  select side, bound, 1::bigint, total + 1 from owner, unnest(array[${from}, ${to}]) with ordinality as _ (bound, side)
  union all
  select side, bound, case when at < bound then middle + 1 else low end, case when at < bound then high else middle end
  from (
    select side, bound, low, high, (low + high) / 2 as middle,
      (select ${createdAt} from ${table} where ${numbersBetween(sequence, '(low + high) / 2', '(low + high) / 2')} limit 1) as at
    from ${name}_search where low < high offset 0) probe
),
${name} as (
  select max(low) filter (where side = 1) as low, max(low) filter (where side = 2) - 1 as high
  from ${name}_search having count(*) > 0)`
}
