import { hash } from 'node:crypto'
import { maxPageSize, type Page } from '@workspace-wallet/contract'
import { timeText } from '../statement.ts'
import { bisection } from './bisection.ts'
import type { Values } from './conditions.ts'
import type { CreatedFilter, Direction, List, PageRequest, Sequence } from './list.ts'
import type { ListDatabase, ListQuery } from './list-reader.ts'
import { numberOf, numbersBetween } from './numbers.ts'

/** Reads one page; null if the owner does not exist. @throws DomainError S002, S012 (see ListReader) */
export async function readPage<Row, Item>(
  db: ListDatabase,
  list: List,
  values: Values,
  toItem: (row: Row) => Item,
): Promise<Page<Item> | null> {
  const rows = await db.read<PageRow<Row>>(queryOf(list, values))
  if (rows.length === 0) return null
  // Every row has the total. An empty page is one row with the total and nulls.
  const content = rows.flatMap(({ total: _, number, ...row }) => (number === null ? [] : toItem(row as Row)))
  return { content, page: totalsOf(list, rows[0]!.total) }
}

type PageRow<Row> = Row & { total: number; number: number | null }

function totalsOf({ page, size }: PageRequest, totalElements: number): Page<unknown>['page'] {
  return {
    size,
    number: totalElements === 0 ? 0 : page,
    totalElements,
    totalPages: Math.ceil(totalElements / size),
  }
}

type Order = { columns: { column: string; direction: Direction }[]; numbers: Direction }

/**
 * The order of a sort, as columns and the direction of the numbers, which break ties in the direction of the last field
 * (newest first without any), as the indexes do. Time as the last field is the order of the numbers itself.
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

function queryOf<Row>(list: List, values: Values): ListQuery<Row> {
  const order = orderOf(list)
  const bound: Bound = {
    created: createdBounds(list.filter, values),
    page: values.bind(list.page, 'bigint'),
    size: values.bind(list.size, 'bigint'),
  }
  const query = { workspace: list.workspace, values: values.bound }
  if (!isFiltered(list) && order.columns.length === 0) {
    const text = rangeText(list, order, bound)
    return { ...query, cost: 'bounded', statement: { name: `list-${hash('sha256', text).slice(0, 32)}`, text } }
  }
  const isByTime = !isFiltered(list) && order.columns[0]!.column === list.sequence.createdAt
  const text = isByTime ? momentsText(list, order, bound) : searchText(list, order, bound)
  // Not prepared: there are too many of these texts to keep on every connection.
  return { ...query, cost: 'search', statement: { name: '', text }, blamed: blamedParameter(list) }
}

/** The parameter to change if the search is too expensive. A filter by time of creation is never the cause. */
function blamedParameter({ filter }: List): string {
  const given = Object.keys(filter).filter(name => filter[name] !== undefined && !name.startsWith('created'))
  return given.find(name => name.endsWith('Prefix')) ?? given[0] ?? 'sort'
}

/** Whether the matches must be counted, because the numbers do not give the total. */
function isFiltered({ conditions, findIn }: List): boolean {
  return conditions.length > 0 || findIn !== undefined
}

/** Placeholders of bound values. The product of page and size stays below 2^63. */
type Bound = { created: { from: string; to: string } | null; page: string; size: string }

/** A page that is a range of rows. The LIMIT removes no rows: it tells the planner how short the range is. */
function rangeText(list: List, { numbers }: Order, bound: Bound): string {
  const { sequence, shows } = list
  const rowsBetween = (low: string, high: string, limit: number) => `
  select ${sequence.number} as number, ${shows.columns} from ${shows.from}
  where ${numbersBetween(sequence, low, high, numbers)} limit ${limit}`
  const rows = sequence.numberOf
    ? rowsAcrossGaps(sequence, rowsBetween)
    : rowsBetween('page.low', 'page.high', maxPageSize)
  return `
with recursive ${owner(sequence)}, ${span(sequence, bound)}, ${pageOfSpan(numbers, bound)}
select page.total, shown.*
from page left join lateral (${rows}) shown on true
order by shown.number ${numbers}`
}

/** Rows whose numbers have gaps: a range of numbers if the gaps are short, otherwise one row after the other. */
function rowsAcrossGaps(sequence: Sequence, rowsBetween: (low: string, high: string, limit: number) => string): string {
  const [low, high, number] = ['page.low', 'page.high', 'nth'].map(nth => numberOf(sequence, nth))
  const ends = `(select ${low} as low, ${high} as high offset 0) ends`
  const isShort = `ends.high - ends.low < ${2 * maxPageSize}`
  return `
  select row.* from ${ends}, lateral (${rowsBetween('ends.low', 'ends.high', maxPageSize)}) row where ${isShort}
  union all
  select row.* from ${ends}, generate_series(page.low, page.high) nth, lateral (select ${number} as number offset 0) of_nth,
  lateral (${rowsBetween('of_nth.number', 'of_nth.number', 1)}) row where not ${isShort}`
}

/**
 * By time, and by another field among rows of the same time. The rows of the page are between the times of the first and
 * the last row of the range of numbers, at any depth.
 */
function momentsText(list: List, order: Order, bound: Bound): string {
  const { sequence } = list
  const { direction } = order.columns[0]!
  const timeOf = (end: string) => {
    const number = numberOf(sequence, `(select ${end} from page where low <= high)`)
    return `(select ${sequence.createdAt} from ${sequence.table} where ${numbersBetween(sequence, number, number)} limit 1)`
  }
  const moments = bisection('moments', sequence, timeOf('low'), `${timeOf('high')} + interval '1 millisecond'`)
  // A page outside the span has no moments and skips nothing.
  const ahead = direction === 'desc' ? 'moments.high - page.high' : 'page.low - moments.low'
  const skipped = `(select greatest(${ahead}, 0) from moments, page)`
  return `
with recursive ${owner(sequence)}, ${span(sequence, bound)}, ${pageOfSpan(direction, bound)}, ${moments},
match as not materialized (${matches({ ...list, parts: undefined }, order, isBetween(sequence, 'moments'))})
${pageOfMatches(list, order, bound, 'select total from page', skipped)}`
}

/** A page of the matches in their order, after an OFFSET. */
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

function isBetween(sequence: Sequence, ends: string): string {
  const [low, high] = ['low', 'high'].map(end => `(select ${numberOf(sequence, end)} from ${ends})`)
  return `${sequence.number} between ${low} and ${high}`
}

/** Selects the number and the sort keys of the matches, and no other columns, because there may be many to sort. */
function matches(list: List, order: Order, further: string | null): string {
  const { sequence, conditions, findIn, parts } = list
  const source = findIn ?? sequence
  const columns = [
    `${source.number} as number`,
    ...order.columns.map(({ column }, index) => `${column} as key${index}`),
  ]
  const select = `
  select ${columns.join(', ')}
  from ${source.table} where ${[source.where, ...conditions, ...(further ? [further] : [])].join(' and ')}`
  if (!parts) return select
  // PostgreSQL merges parts in their order only when each says that it has one.
  const inOrder = findIn ? '' : ` order by ${orderText(order)}`
  return parts.map(part => `(${select} and ${part}${inOrder})`).join(' union all ')
}

function orderText({ columns, numbers }: Order): string {
  return [...columns.map(({ direction }, index) => `key${index} ${direction}`), `number ${numbers}`].join(', ')
}

/** Reads all columns only for the rows of the page, each by its number. */
function pageOfMatches(list: List, order: Order, { size }: Bound, total: string, skipped: string): string {
  const { sequence, shows } = list
  const by = orderText(order)
  return `select (${total}) as total, place.number, shown.*
from owner
left join lateral (select * from match order by ${by} limit ${size} offset ${skipped}) place on true
left join lateral (
  select ${shows.columns} from ${shows.from} where ${numbersBetween(sequence, 'place.number', 'place.number')} limit 1) shown on true
order by ${by}`
}

function owner(sequence: Sequence): string {
  return `owner as (${sequence.owner})`
}

/** The first and the last of the rows, counted from 1, in the requested range of creation times. */
function span(sequence: Sequence, { created }: Bound): string {
  return created
    ? bisection('span', sequence, created.from, created.to)
    : 'span as (select 1::bigint as low, total as high from owner)'
}

/** The first and the last row of a page of the span. */
function pageOfSpan(numbers: Direction, { page, size }: Bound): string {
  const [low, high] =
    numbers === 'desc'
      ? [`greatest(low, high - ${page} * ${size} - ${size} + 1)`, `high - ${page} * ${size}`]
      : [`low + ${page} * ${size}`, `least(high, low + ${page} * ${size} + ${size} - 1)`]
  return `page as (select ${low} as low, ${high} as high, greatest(high - low + 1, 0) as total from span)`
}

/** An open end is infinite. */
function createdBounds({ createdFrom, createdTo }: CreatedFilter, values: Values): Bound['created'] {
  if (!createdFrom && !createdTo) return null
  const end = (time: Date | undefined, open: string) => (time ? timeText(time) : open)
  return {
    from: values.bind(end(createdFrom, '-infinity'), 'timestamptz'),
    to: values.bind(end(createdTo, 'infinity'), 'timestamptz'),
  }
}
