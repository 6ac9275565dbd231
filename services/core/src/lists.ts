import { hash } from 'node:crypto'
import { type IdKind, maxPageSize, type Page, uuidRangeOfPrefix } from '../contract/index.ts'
import { type Queryable, run, type Statement, statement } from './db/statement.ts'

/**
 * How every list is read (sections 2.2 and 8.1): one statement gives a page and its exact totals, from one snapshot.
 *
 * The rows of one owner count 1…n without gaps. In the default order a page is therefore a range of numbers, and the
 * total is the owner's counter: the first page and the millionth cost the same. A range of creation times is a range
 * of numbers too, found by bisection. Only other filters have to count what they match; only with them, or in another
 * order, are rows skipped to reach a page.
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
  return order.columns.length === 0 && !isFiltered(list)
    ? rangeText(list, order, bound)
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
  const { where, number } = list.sequence
  const { page, size } = bound
  const range =
    numbers === 'desc'
      ? `greatest(span.low, span.high - ${page} * ${size} - ${size} + 1) and span.high - ${page} * ${size}`
      : `span.low + ${page} * ${size} and least(span.high, span.low + ${page} * ${size} + ${size} - 1)`
  return `
with recursive ${ownerAndSpan(list.sequence, bound)}
select greatest(span.high - span.low + 1, 0) as total, shown.*
from span left join lateral (
  select ${number} as number, ${list.shows.columns} from ${list.shows.from}
  where ${where} and ${number} between ${range}
  order by ${number} ${numbers} limit ${maxPageSize}) shown on true
order by shown.number ${numbers}`
}

/**
 * The page is what is left of the matches, in their order, after an OFFSET. Only the rows shown are read whole, each
 * by its number: LIMIT 1 keeps the planner, who cannot know how few they are, from joining whole tables.
 */
function searchText(list: List, order: Order, bound: Bound): string {
  const { sequence, findIn } = list
  const by = orderText(order)
  const total = isFiltered(list) ? 'select count(*) from match' : 'select greatest(high - low + 1, 0) from span'
  return `
with recursive ${findIn ? owner(sequence) : ownerAndSpan(sequence, bound)},
match as ${findIn ? '' : 'not '}materialized (${matches(list, order, bound)})
select (${total}) as total, place.number, shown.*
from owner
left join lateral (
  select * from match order by ${by} limit ${bound.size} offset ${bound.page} * ${bound.size}) place on true
left join lateral (
  select ${list.shows.columns} from ${list.shows.from}
  where ${sequence.where} and ${sequence.number} = place.number limit 1) shown on true
order by ${by}`
}

function orderText({ columns, numbers }: Order): string {
  return [...columns.map(({ direction }, index) => `key${index} ${direction}`), `tie_break ${numbers}`].join(', ')
}

function matches({ sequence, conditions: asked, findIn, parts }: List, order: Order, { created }: Bound): string {
  const source = findIn ?? sequence
  const tieBreak = (order.columns.length > 0 && !findIn && sequence.tieBreak) || source.number
  const keys = order.columns.map(({ column }, index) => `${column} as key${index}`)
  const conditions = [source.where, ...asked]
  if (created && findIn)
    conditions.push(`${source.createdAt} >= ${created.from} and ${source.createdAt} < ${created.to}`)
  else if (created) conditions.push(`${source.number} between (select low from span) and (select high from span)`)
  const select = `select ${[`${source.number} as number`, `${tieBreak} as tie_break`, ...keys].join(', ')}
  from ${source.table} where ${conditions.join(' and ')}`
  if (!parts) return select
  // PostgreSQL merges parts in their order only when each says that it has one.
  const inOrder = findIn ? '' : ` order by ${orderText(order)}`
  return parts.map(part => `(${select} and ${part}${inOrder})`).join('\nunion all ')
}

function owner(sequence: Sequence): string {
  return `owner as (${sequence.owner})`
}

/**
 * The owner, and `span`: the first and the last number of the rows that were created in the range asked for.
 *
 * Both ends are looked for side by side: the first row that was not created before the bound has a number from low to
 * high. The look-up in the middle is a subquery, which cannot become a join of the whole table; OFFSET 0 keeps
 * PostgreSQL from doing it twice.
 */
function ownerAndSpan(sequence: Sequence, { created }: Bound): string {
  if (!created) return `${owner(sequence)}, span as (select 1::bigint as low, total as high from owner)`
  const { table, where, number, createdAt } = sequence
  return `${owner(sequence)},
bisection (bound, low, high) as (
  select bound, 1::bigint, total + 1 from owner, unnest(array[${created.from}, ${created.to}]) as bound
  union all
  select bound, case when at < bound then middle + 1 else low end, case when at < bound then high else middle end
  from (
    select bound, low, high, (low + high) / 2 as middle,
      (select ${createdAt} from ${table} where ${where} and ${number} = (low + high) / 2) as at
    from bisection where low < high offset 0) probe
),
span as (
  select max(low) filter (where bound = ${created.from}) as low, max(low) filter (where bound = ${created.to}) - 1 as high
  from bisection having count(*) > 0)`
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
