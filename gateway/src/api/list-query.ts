import { defaultPageSize, type FieldReason, maxPageSize } from '@workspace-wallet/contract'
import { z } from 'zod'
import { fieldFault, issueFault, shortened } from './field-fault.ts'

/** The schema of a query parameter: from its text to its value. Its error messages are FieldReasons. */
type Parameter<Value = unknown> = z.ZodType<Value, string>
type Sort<Field extends string> = { field: Field; direction: 'asc' | 'desc' }

/** The schema of a list's query. Every list also has `page` and `size`. */
export type ListQuerySchema<
  Field extends string = string,
  Filters extends Record<string, Parameter> = Record<string, Parameter>,
> = {
  sortable: readonly Field[]
  sort: Parameter<Sort<Field>>
  filters: Filters
}

export type ListParameters<Query extends ListQuerySchema> = {
  page: number
  size: number
  sort: z.output<Query['sort']>[]
  filter: { [Name in keyof Query['filters']]?: z.output<Query['filters'][Name]> }
}

export function listQuery<const Field extends string, const Filters extends Record<string, Parameter>>(
  sortable: readonly Field[],
  filters: Filters,
): ListQuerySchema<Field, Filters> {
  return { sortable, sort: sortBy(sortable), filters }
}

/**
 * Parses the query of a list endpoint (section 8.1). An unknown parameter is an error, so that a mistyped filter does not
 * return the unfiltered list.
 *
 * @throws DomainError S012 for the first invalid parameter, in the order sent
 */
export function parseListQuery<Query extends ListQuerySchema>(text: string, query: Query): ListParameters<Query> {
  const request = { page: 0, size: defaultPageSize, sort: [] as Sort<string>[], filter: {} as Record<string, unknown> }
  const seen = new Set<string>()
  for (const [name, value] of new URLSearchParams(`?${text}`)) {
    if (name === 'sort') {
      const sort = parse(name, query.sort, value)
      if (request.sort.some(({ field }) => field === sort.field)) throw fieldFault('sort', 'REPEATED')
      request.sort.push(sort)
      continue
    }
    if (seen.has(name)) throw fieldFault(name, 'REPEATED')
    seen.add(name)
    if (name === 'page') request.page = parse(name, pageParameter, value)
    else if (name === 'size') request.size = parse(name, sizeParameter, value)
    else if (Object.hasOwn(query.filters, name)) request.filter[name] = parse(name, query.filters[name]!, value)
    else throw fieldFault(shortened(name), 'UNKNOWN')
  }
  return request as ListParameters<Query>
}

function parse<Value>(name: string, parameter: Parameter<Value>, text: string): Value {
  const result = parameter.safeParse(text)
  if (!result.success) throw issueFault(name, result.error.issues[0]!)
  return result.data
}

const integer = z.string().regex(/^\d+$/, 'NOT_AN_INTEGER').transform(Number)

export const pageParameter = integer
  .refine(Number.isSafeInteger, { error: 'TOO_LARGE', params: { limit: Number.MAX_SAFE_INTEGER } })
  .meta({ type: 'integer', description: 'Page number, zero-based. Default: 0.' })

export const sizeParameter = integer
  .refine(wanted => wanted >= 1, { error: 'TOO_SMALL', params: { limit: 1 } })
  .transform(wanted => Math.min(wanted, maxPageSize))
  .meta({
    type: 'integer',
    description: `Items per page, at least 1. Values above ${maxPageSize} are capped. Default: ${defaultPageSize}.`,
  })

function sortBy<Field extends string>(sortable: readonly Field[]): Parameter<Sort<Field>> {
  return z
    .string()
    .transform((text, context) => {
      const [field = '', direction, ...rest] = text.split(',')
      if ((direction !== 'asc' && direction !== 'desc') || rest.length > 0) return addIssue(context, 'NOT_A_SORT')
      if (!sortable.includes(field as Field)) return addIssue(context, 'NOT_SORTABLE', sortable.join(', '))
      return { field: field as Field, direction: direction as 'asc' | 'desc' }
    })
    .describe(
      `\`field,direction\`, direction \`asc\` or \`desc\`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: ${sortable.map(field => `\`${field}\``).join(', ')}. Default: newest first.`,
    )
}

function addIssue(context: z.RefinementCtx, reason: FieldReason, limit?: string): never {
  context.addIssue({ code: 'custom', message: reason, params: { limit } })
  return z.NEVER
}

/** One of a few values. */
export function enumParameter<const Value extends string>(values: readonly Value[]) {
  return z.enum(values, 'NOT_ONE_OF')
}

const maxPrefixLength = 64

/** The beginning of an ID. */
export const prefixParameter = z
  .string()
  .min(1, 'EMPTY')
  .max(maxPrefixLength, 'TOO_LONG')
  .regex(/^[!-~]+$/, 'BAD_CHARACTER')
  .describe(`The beginning of the ID, 1 to ${maxPrefixLength} visible ASCII characters.`)

const timePattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:T((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/

/**
 * An ISO 8601 time with a zone, or a date, which means midnight UTC. Stored times are whole milliseconds, so a time between
 * two milliseconds becomes the later one.
 */
export const timeParameter = z.string().transform((text, context) => {
  const match = timePattern.exec(text)
  // An unencoded plus in a query is decoded to a space.
  if (!match) return addIssue(context, timePattern.test(text.replace(' ', '+')) ? 'UNESCAPED_PLUS' : 'NOT_A_TIME')
  const [, year, month, day, minutes = '00:00', seconds = '00', fraction = '', zone = 'Z'] = match
  // Date would accept 30 February as 2 March.
  const daysOfMonth = new Date(Date.UTC(Number(year), Number(month), 0)).getUTCDate()
  if (Number(month) > 12 || Number(day) > daysOfMonth) return addIssue(context, 'NOT_A_TIME')
  const milliseconds = fraction.slice(0, 3).padEnd(3, '0')
  const value = new Date(`${year}-${month}-${day}T${minutes}:${seconds}.${milliseconds}${zone}`)
  if (Number.isNaN(value.getTime())) return addIssue(context, 'NOT_A_TIME')
  return /[1-9]/.test(fraction.slice(3)) ? new Date(value.getTime() + 1) : value
})
