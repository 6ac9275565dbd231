import { DomainError, defaultPageSize, type FieldReason, maxPageSize } from '@workspace-wallet/contract'
import { shown } from './body.ts'

/** Reads one filter value; gives its reason when it cannot. */
type FilterParser<Value> = (text: string) => { value: Value } | { reason: FieldReason; limit?: string | number }

export type ListRequest<Field extends string, Filter> = {
  page: number
  size: number
  sort: { field: Field; direction: 'asc' | 'desc' }[]
  filter: Filter
}

/**
 * The query of a list endpoint (section 8.1). On lists an unknown parameter is an error: a mistyped filter must not
 * return everything.
 *
 * @throws DomainError S012 naming the parameter
 */
export function parseListQuery<Field extends string, Filter extends Record<string, unknown>>(
  query: string,
  sortable: readonly Field[],
  filters: { [Name in keyof Filter & string]-?: FilterParser<NonNullable<Filter[Name]>> },
): ListRequest<Field, Filter> {
  const request: ListRequest<Field, Filter> = { page: 0, size: defaultPageSize, sort: [], filter: {} as Filter }
  const seen = new Set<string>()
  for (const [name, text] of new URLSearchParams(`?${query}`)) {
    if (name === 'sort') {
      const sort = parseSort(text, sortable)
      if (request.sort.some(({ field }) => field === sort.field)) throw fault('sort', 'REPEATED')
      request.sort.push(sort)
      continue
    }
    if (seen.has(name)) throw fault(name, 'REPEATED')
    seen.add(name)
    const parseFilter = Object.hasOwn(filters, name) ? filters[name] : undefined
    if (name === 'page') request.page = parsePage(text)
    else if (name === 'size') request.size = parseSize(text)
    else if (parseFilter) {
      const parsed = parseFilter(text)
      if ('reason' in parsed) throw fault(name, parsed.reason, parsed.limit)
      ;(request.filter as Record<string, unknown>)[name] = parsed.value
    } else throw fault(shown(name), 'UNKNOWN')
  }
  return request
}

function parsePage(text: string): number {
  if (!/^\d+$/.test(text)) throw fault('page', 'NOT_AN_INTEGER')
  const page = Number(text)
  if (!Number.isSafeInteger(page)) throw fault('page', 'TOO_LARGE', Number.MAX_SAFE_INTEGER)
  return page
}

function parseSize(text: string): number {
  if (!/^\d+$/.test(text)) throw fault('size', 'NOT_AN_INTEGER')
  const size = Number(text)
  if (size < 1) throw fault('size', 'TOO_SMALL', 1)
  return Math.min(size, maxPageSize)
}

function parseSort<Field extends string>(text: string, sortable: readonly Field[]) {
  const [field = '', direction, ...rest] = text.split(',')
  if ((direction !== 'asc' && direction !== 'desc') || rest.length > 0) throw fault('sort', 'NOT_A_SORT')
  if (!sortable.includes(field as Field)) throw fault('sort', 'NOT_SORTABLE', sortable.join(', '))
  return { field: field as Field, direction: direction as 'asc' | 'desc' }
}

function fault(field: string, reason: FieldReason, limit?: string | number): DomainError {
  return new DomainError('S012', limit === undefined ? { field, reason } : { field, reason, limit })
}

/** One of a few words. */
export function oneOf<const Word extends string>(words: readonly Word[]): FilterParser<Word> {
  return text =>
    words.includes(text as Word) ? { value: text as Word } : { reason: 'NOT_ONE_OF', limit: words.join(', ') }
}

const maxPrefixLength = 64

/** The beginning of an identifier, taken as it is. */
export const prefix: FilterParser<string> = text => {
  if (text === '') return { reason: 'EMPTY' }
  if (text.length > maxPrefixLength) return { reason: 'TOO_LONG', limit: maxPrefixLength }
  return /^[!-~]+$/.test(text) ? { value: text } : { reason: 'BAD_CHARACTER' }
}

const timePattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:T((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/

/**
 * An ISO 8601 time with a zone; a bare date is midnight UTC. Stored times are whole milliseconds, so one between two
 * of them means the later.
 */
export const time: FilterParser<Date> = text => {
  const match = timePattern.exec(text)
  // In a query a plus stands for a space.
  if (!match) return { reason: timePattern.test(text.replace(' ', '+')) ? 'UNESCAPED_PLUS' : 'NOT_A_TIME' }
  const [, year, month, day, minutes = '00:00', seconds = '00', fraction = '', zone = 'Z'] = match
  // Date takes 30 February for 2 March.
  const daysOfMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  if (Number(month) > 12 || Number(day) > daysOfMonth) return { reason: 'NOT_A_TIME' }
  const milliseconds = fraction.slice(0, 3).padEnd(3, '0')
  const value = new Date(`${year}-${month}-${day}T${minutes}:${seconds}.${milliseconds}${zone}`)
  if (Number.isNaN(value.getTime())) return { reason: 'NOT_A_TIME' }
  return { value: /[1-9]/.test(fraction.slice(3)) ? new Date(value.getTime() + 1) : value }
}
