import { hash } from 'node:crypto'
import { type IdKind, maxPageSize, type Page, uuidRangeOfPrefix } from '../contract/index.ts'
import { type Queryable, run, type Statement, statement } from './db/statement.ts'

/**
 * How every list is read (sections 2.2 and 8.1): one statement gives a page and its exact totals, from one snapshot.
 *
 * The rows of one owner count 1…n without gaps. In order of time a page is therefore a range of numbers, and the
 * total is the owner's counter: the first page and the millionth cost the same. A range of creation times is a range
 * of numbers too, found by bisection. Only other filters have to count what they match; only with them, or in an order
 * that does not begin with time, are rows skipped to reach a page.
 */
export type List = Search &
  PageRequest & {
    /** What a page shows of each row, and the FROM item that has it: the table of the sequence and what it needs. */
    shows: { columns: string; from: string }
    created: CreatedFilter
    sort: SortField[]
  }

/** Which rows a list has, and how to find them. */
export type Search = {
  sequence: Sequence
  /** What a filter asks for, the time of creation aside. */
  conditions: string[]
  /** Conditions that divide the rows so that each part has an index of its own. */
  parts?: string[] | undefined
  /**
   * Where to look for what matches, when an index leads there from the filter, but not in the order of the list: all
   * matches are found first and then sorted. Otherwise rows are read in the order of the list and matched on the way.
   */
  findIn?: Source | undefined
}

/** Fragments of SQL, in which `$1` and so on are what `Values` has bound. */
export type Source = {
  table: string
  where: string
  /** The number of a row. */
  number: string
  createdAt: string
  /** The column behind each field to sort by; null when all rows have the same. */
  sortable: Record<string, string | null>
}

/** Rows of one owner that count 1…n in the order of their creation; their times never run back along the numbers. */
export type Sequence = Source & {
  /** Selects the owner's counter, as `total`; no row when there is no such owner. */
  owner: string
  /** Another column in the order of the numbers: the one that ends the indexes for other orders. */
  tieBreak?: string
}

/** A page, and its order: the first field is primary, later ones break ties; none is newest first. */
type PageRequest = { page: number; size: number }
export type SortField = { field: string; direction: Direction }
type Direction = 'asc' | 'desc'
type CreatedFilter = { createdFrom?: Date | undefined; createdTo?: Date | undefined }

/** What a caller may ask of a list. */
export type ListRequest<Filter> = PageRequest & { filter: Filter; sort: SortField[] }

export function sortsBy(sort: SortField[], field: string): boolean {
  return sort.some(each => each.field === field)
}

/** The values of a statement: `bind` keeps one and answers with its place in the text. */
export class Values {
  readonly bound: unknown[]

  /** @param bound what the fragments of a sequence call `$1` and so on */
  constructor(...bound: unknown[]) {
    this.bound = bound
  }

  bind(value: unknown, type: string): string {
    return `$${this.bound.push(value)}::${type}`
  }
}

/** The condition that the public ids of a UUID column begin with a text. */
export function idBeginsWith(values: Values, column: string, kind: IdKind, prefix: string): string {
  const range = uuidRangeOfPrefix(kind, prefix)
  if (!range) return 'false'
  return `${column} between ${values.bind(range.from, 'uuid')} and ${values.bind(range.to, 'uuid')}`
}

/** The condition that an ASCII column in C collation begins with a text, any text. */
export function textBeginsWith(values: Values, column: string, prefix: string): string {
  const afterAll = `${prefix}\u{10FFFF}`
  return `${column} >= ${values.bind(prefix, 'text')} and ${column} < ${values.bind(afterAll, 'text')}`
}

/** Reads one page. Null when the owner does not exist. */
export async function readPage<Row, Item>(
  db: Queryable,
  list: List,
  values: Values,
  toItem: (row: Row) => Item,
): Promise<Page<Item> | null> {
  const order = orderOf(list)
  const text = pageText(list, order, values)
  const rows = await run(db, prepared<Row>(text, order), values.bound)
  if (rows.length === 0) return null
  // The totals come with every row, and in a row of nulls when there are none to show.
  const content = rows.flatMap(({ total: _, number, ...row }) => (number === null ? [] : toItem(row as Row)))
  return { content, page: totalsOf(list, rows[0]!.total) }
}

/** The page of a list that has no rows, known without asking. */
export function emptyPage<Item>(size: number): Page<Item> {
  return { content: [], page: totalsOf({ page: 0, size }, 0) }
}

function totalsOf({ page, size }: PageRequest, totalElements: number): Page<unknown>['page'] {
  return {
    size,
    number: totalElements === 0 ? 0 : page,
    totalElements,
    totalPages: Math.ceil(totalElements / size),
  }
}

type PageRow<Row> = Row & { total: number; number: number | null }

/**
 * Each text is a prepared statement of its own. Those of sorts by several fields have no name and are planned each
 * time: there are too many to keep on every connection.
 */
function prepared<Row>(text: string, order: Order): Statement<PageRow<Row>> {
  const name = order.columns.length > 1 ? '' : `list-${hash('sha256', text).slice(0, 32)}`
  return statement(name, text)
}

type Order = { columns: { column: string; direction: Direction }[]; numbers: Direction }

/**
 * What a sort comes to. Ties are broken by number, in the direction of the last field (newest first when there is
 * none), so that an index can be read in this order. Time, as the last field, is the order of the numbers itself.
 */
function orderOf({ sequence, findIn, sort }: List): Order {
  const source = findIn ?? sequence
  const columns: Order['columns'] = []
  for (const { field, direction } of sort) {
    const column = source.sortable[field]
    if (column === undefined) throw new Error(`no list is sorted by ${field}`)
    if (column !== null && !columns.some(earlier => earlier.column === column)) columns.push({ column, direction })
  }
  const numbers = columns.at(-1)?.direction ?? 'desc'
  if (columns.at(-1)?.column === source.createdAt) columns.pop()
  return { columns, numbers }
}

function pageText(list: List, order: Order, values: Values): string {
  const bound: Bound = {
    created: createdBounds(list.created, values),
    page: values.bind(list.page, 'bigint'),
    size: values.bind(list.size, 'bigint'),
  }
  if (isFiltered(list)) return searchText(list, order, bound)
  if (order.columns.length === 0) return rangeText(list, order, bound)
  return order.columns[0]!.column === list.sequence.createdAt
    ? momentsText(list, order, bound)
    : searchText(list, order, bound)
}

/** Whether the matches have to be counted: the numbers alone do not tell. */
function isFiltered({ conditions, findIn }: List): boolean {
  return conditions.length > 0 || findIn !== undefined
}

/** Places of bound values. The product of page and size stays below 2^63. */
type Bound = { created: { from: string; to: string } | null; page: string; size: string }

/** The page is a range of numbers. Its LIMIT cuts nothing off: it tells the planner how short the range is. */
function rangeText(list: List, { numbers }: Order, bound: Bound): string {
  const { sequence, shows } = list
  return `
with recursive ${owner(sequence)}, ${span(sequence, bound)}, ${pageOfSpan(numbers, bound)}
select page.total, shown.*
from page left join lateral (
  select ${sequence.number} as number, ${shows.columns} from ${shows.from}
  where ${sequence.where} and ${sequence.number} between page.low and page.high
  order by ${sequence.number} ${numbers} limit ${maxPageSize}) shown on true
order by shown.number ${numbers}`
}

/**
 * By time, and by something else among rows of one time: the rows of the page are among those of its first and its
 * last moment and between, however deep it lies.
 */
function momentsText(list: List, order: Order, bound: Bound): string {
  const { sequence } = list
  const { direction } = order.columns[0]!
  const timeOf = (end: string) =>
    `(select ${sequence.createdAt} from ${sequence.table}
    where ${sequence.where} and ${sequence.number} = (select ${end} from page where low <= high))`
  const moments = bisection('moments', sequence, timeOf('low'), `${timeOf('high')} + interval '1 millisecond'`)
  // A page that lies outside the span has no moments, and nothing to skip.
  const ahead = direction === 'desc' ? 'moments.high - page.high' : 'page.low - moments.low'
  const skipped = `(select greatest(${ahead}, 0) from moments, page)`
  return `
with recursive ${owner(sequence)}, ${span(sequence, bound)}, ${pageOfSpan(direction, bound)}, ${moments},
match as not materialized (${matches({ ...list, parts: undefined }, order, isBetween(sequence, 'moments'))})
${pageOfMatches(list, order, bound, 'select total from page', skipped)}`
}

/** The page is what is left of the matches, in their order, after an OFFSET. */
function searchText(list: List, order: Order, bound: Bound): string {
  const { sequence, findIn } = list
  const { created, page, size } = bound
  const total = isFiltered(list) ? 'select count(*) from match' : 'select greatest(high - low + 1, 0) from span'
  const skipped = `${page} * ${size}`
  if (findIn) {
    const isCreated = created && `${findIn.createdAt} >= ${created.from} and ${findIn.createdAt} < ${created.to}`
    return `
with ${owner(sequence)}, match as materialized (${matches(list, order, isCreated)})
${pageOfMatches(list, order, bound, total, skipped)}`
  }
  return `
with recursive ${owner(sequence)}, ${span(sequence, bound)},
match as not materialized (${matches(list, order, created && isBetween(sequence, 'span'))})
${pageOfMatches(list, order, bound, total, skipped)}`
}

function isBetween({ number }: Sequence, ends: string): string {
  return `${number} between (select low from ${ends}) and (select high from ${ends})`
}

/** Selects the number and the sort keys of what matches. */
function matches({ sequence, conditions, findIn, parts }: List, order: Order, further: string | null): string {
  const source = findIn ?? sequence
  const tieBreak = (order.columns.length > 0 && !findIn && sequence.tieBreak) || source.number
  const keys = order.columns.map(({ column }, index) => `${column} as key${index}`)
  const select = `
  select ${[`${source.number} as number`, `${tieBreak} as tie_break`, ...keys].join(', ')}
  from ${source.table} where ${[source.where, ...conditions, ...(further ? [further] : [])].join(' and ')}`
  if (!parts) return select
  // PostgreSQL merges parts in their order only when each says that it has one.
  const inOrder = findIn ? '' : ` order by ${orderText(order)}`
  return parts.map(part => `(${select} and ${part}${inOrder})`).join(' union all ')
}

function orderText({ columns, numbers }: Order): string {
  return [...columns.map(({ direction }, index) => `key${index} ${direction}`), `tie_break ${numbers}`].join(', ')
}

/**
 * Only the rows of the page are read whole, each by its number: LIMIT 1 keeps the planner, who cannot know how few
 * they are, from joining whole tables.
 */
function pageOfMatches(list: List, order: Order, { size }: Bound, total: string, skipped: string): string {
  const { sequence, shows } = list
  const by = orderText(order)
  return `select (${total}) as total, place.number, shown.*
from owner
left join lateral (select * from match order by ${by} limit ${size} offset ${skipped}) place on true
left join lateral (
  select ${shows.columns} from ${shows.from}
  where ${sequence.where} and ${sequence.number} = place.number limit 1) shown on true
order by ${by}`
}

function owner(sequence: Sequence): string {
  return `owner as (${sequence.owner})`
}

/** The first and the last number of the rows that were created in the range asked for. */
function span(sequence: Sequence, { created }: Bound): string {
  return created
    ? bisection('span', sequence, created.from, created.to)
    : 'span as (select 1::bigint as low, total as high from owner)'
}

/** The first and the last number of a page of the span. */
function pageOfSpan(numbers: Direction, { page, size }: Bound): string {
  const [low, high] =
    numbers === 'desc'
      ? [`greatest(low, high - ${page} * ${size} - ${size} + 1)`, `high - ${page} * ${size}`]
      : [`low + ${page} * ${size}`, `least(high, low + ${page} * ${size} + ${size} - 1)`]
  return `page as (select ${low} as low, ${high} as high, greatest(high - low + 1, 0) as total from span)`
}

/**
 * The first and the last number of the rows that were created from one time on and before another; none when a time
 * is null.
 *
 * Both ends are looked for side by side: the first row that was not created before the bound has a number from low to
 * high. The look-up in the middle is a subquery, which cannot become a join of the whole table; OFFSET 0 keeps
 * PostgreSQL from doing it twice.
 */
function bisection(name: string, sequence: Sequence, from: string, to: string): string {
  const { table, where, number, createdAt } = sequence
  return `
${name}_search (side, bound, low, high) as (
  select side, bound, 1::bigint, total + 1 from owner, unnest(array[${from}, ${to}]) with ordinality as _ (bound, side)
  union all
  select side, bound, case when at < bound then middle + 1 else low end, case when at < bound then high else middle end
  from (
    select side, bound, low, high, (low + high) / 2 as middle,
      (select ${createdAt} from ${table} where ${where} and ${number} = (low + high) / 2) as at
    from ${name}_search where low < high offset 0) probe
),
${name} as (
  select max(low) filter (where side = 1) as low, max(low) filter (where side = 2) - 1 as high
  from ${name}_search having count(*) > 0)`
}

/** An end that is open is infinite. No row is older than the epoch, and PostgreSQL's calendar is shorter than ours. */
function createdBounds({ createdFrom, createdTo }: CreatedFilter, values: Values): Bound['created'] {
  if (!createdFrom && !createdTo) return null
  const end = (time: Date | undefined, open: string) =>
    time ? new Date(Math.max(0, Math.min(time.getTime(), latestTimeMs))).toISOString() : open
  return {
    from: values.bind(end(createdFrom, '-infinity'), 'timestamptz'),
    to: values.bind(end(createdTo, 'infinity'), 'timestamptz'),
  }
}

/** The end of the year 9999, the last that ISO 8601 writes with four digits. */
const latestTimeMs = Date.UTC(10_000, 0, 1) - 1
