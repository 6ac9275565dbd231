import { defaultPageSize, type FieldReason, maxPageSize, visibleText } from '@workspace-wallet/contract'
import { z } from 'zod'
import { fieldFault, issueFault, shortened, unknownFault } from './field-fault.ts'

/** The schema of a query parameter: from its text to its value. Its error messages are FieldReasons. */
type Parameter<Value = unknown> = z.ZodType<Value, string>
type Parameters = Record<string, Parameter>
type Sort<Field extends string> = { field: Field; direction: 'asc' | 'desc' }

/** The schema of a query. One of its parameters can be repeated. */
export type QuerySchema<Of extends Parameters = Parameters, Repeatable extends string = string> = {
  parameters: Of
  repeatable: Repeatable
}

/** The parameters that were sent; an array of the values of the one that can be repeated. */
export type QueryParameters<Query extends QuerySchema> = {
  [Name in keyof Query['parameters']]?: Name extends Query['repeatable']
    ? z.output<Query['parameters'][Name]>[]
    : z.output<Query['parameters'][Name]>
}

/** The schema of a list's query: `page`, `size`, `sort` and filters. */
type ListParameterSchemas<Field extends string> = {
  page: Parameter<number>
  size: Parameter<number>
  sort: Parameter<Sort<Field>>
}
export type ListQuerySchema<Field extends string = string, Filters extends Parameters = Parameters> = QuerySchema<
  ListParameterSchemas<Field> & Filters,
  'sort'
>

export type ListParameters<Query extends ListQuerySchema> = {
  page: number
  size: number
  sort: z.output<Query['parameters']['sort']>[]
  filter: Omit<QueryParameters<Query>, keyof ListParameterSchemas<string>>
}

export function listQuery<const Field extends string, const Filters extends Parameters>(
  sortable: readonly Field[],
  filters: Filters,
): ListQuerySchema<Field, Filters> {
  const parameters = { page: pageParameter, size: sizeParameter(defaultPageSize, maxPageSize), sort: sortBy(sortable) }
  return { parameters: { ...parameters, ...filters }, repeatable: 'sort' }
}

/**
 * Parses the query of a list endpoint (section 8.1).
 *
 * @throws DomainError S012 for the first invalid parameter, in the order sent
 */
export function parseListQuery<Query extends ListQuerySchema>(text: string, query: Query): ListParameters<Query> {
  const { page = 0, size = defaultPageSize, sort = [], ...filter } = parseQuery(text, query as ListQuerySchema)
  return { page, size, sort, filter } as ListParameters<Query>
}

/**
 * Parses a query. An unknown parameter is an error, so that a mistyped filter does not return everything.
 *
 * @throws DomainError S012 for the first invalid parameter, in the order sent
 */
export function parseQuery<Query extends QuerySchema>(text: string, query: Query): QueryParameters<Query> {
  const { parameters, repeatable } = query
  const found: Record<string, unknown> = {}
  for (const [name, value] of new URLSearchParams(`?${text}`)) {
    const parameter = Object.hasOwn(parameters, name) ? parameters[name]! : null
    if (!parameter) throw unknownFault(shortened(name), name, Object.keys(parameters))
    if (name === repeatable) {
      const parsed = parse(name, parameter, value)
      const before = (found[name] ?? []) as unknown[]
      if (before.some(each => subjectOf(each) === subjectOf(parsed))) throw fieldFault(name, 'REPEATED')
      found[name] = [...before, parsed]
    } else if (Object.hasOwn(found, name)) throw fieldFault(name, 'REPEATED')
    else found[name] = parse(name, parameter, value)
  }
  return found as QueryParameters<Query>
}

/** What a value of a repeated parameter is about, which no other value may be: the field of a sort, or the value itself. */
function subjectOf(value: unknown): unknown {
  return typeof value === 'object' ? (value as Sort<string>).field : value
}

function parse<Value>(name: string, parameter: Parameter<Value>, text: string): Value {
  const result = parameter.safeParse(text)
  if (!result.success) throw issueFault(name, result.error.issues[0]!)
  return result.data
}

const integer = z.string().regex(/^\d+$/, 'NOT_AN_INTEGER').transform(Number)

const tooLarge = { error: 'TOO_LARGE', params: { limit: Number.MAX_SAFE_INTEGER } }

/** A position in the log of events, or `head`. */
export const positionParameter = z
  .string()
  .regex(/^(?:\d+|head)$/, 'NOT_A_POSITION')
  .transform(text => (text === 'head' ? text : Number(text)))
  .refine(position => position === 'head' || Number.isSafeInteger(position), tooLarge)
  .meta({
    type: undefined,
    pattern: undefined,
    anyOf: [
      { type: 'integer', minimum: 0, maximum: Number.MAX_SAFE_INTEGER },
      { type: 'string', const: 'head' },
    ],
  })

const pageParameter = integer.refine(Number.isSafeInteger, tooLarge).meta({
  type: 'integer',
  minimum: 0,
  maximum: Number.MAX_SAFE_INTEGER,
  default: 0,
  description: 'Page number, zero-based. Default: 0.',
})

/** The size of a page. A value above `most` is reduced to it. */
export function sizeParameter(byDefault: number, most: number) {
  return integer
    .refine(wanted => wanted >= 1, { error: 'TOO_SMALL', params: { limit: 1 } })
    .transform(wanted => Math.min(wanted, most))
    .meta({
      type: 'integer',
      minimum: 1,
      default: byDefault,
      description: `Items per page. Values above ${most} are capped. Default: ${byDefault}.`,
    })
}

function sortBy<Field extends string>(sortable: readonly Field[]): Parameter<Sort<Field>> {
  return z
    .string()
    .transform((text, context) => {
      const [field = '', direction, ...rest] = text.split(',')
      if ((direction !== 'asc' && direction !== 'desc') || rest.length > 0) return addIssue(context, 'NOT_A_SORT')
      if (!sortable.includes(field as Field)) return addIssue(context, 'NOT_SORTABLE', sortable.join(', '))
      return { field: field as Field, direction: direction as 'asc' | 'desc' }
    })
    .meta({
      pattern: `^(${sortable.join('|')}),(asc|desc)$`,
      description: `\`field,direction\`, direction \`asc\` or \`desc\`. Repeat it for several fields: the first is primary, later ones break ties. Sortable fields: ${sortable.map(field => `\`${field}\``).join(', ')}. Default: newest first.`,
    })
}

function addIssue(context: z.RefinementCtx, reason: FieldReason, limit?: string): never {
  context.addIssue({ code: 'custom', message: reason, params: { limit } })
  return z.NEVER
}

/** One of a few values. */
export function enumParameter<const Value extends string>(values: readonly Value[]) {
  return z.enum(values, 'NOT_ONE_OF')
}

const maxTextLength = 64
const textParameter = visibleText(maxTextLength)

/** The beginning of an ID. */
export const prefixParameter = textParameter.describe(
  `The beginning of the ID, 1 to ${maxTextLength} visible ASCII characters.`,
)

/** A whole ID or reference. */
export const exactParameter = textParameter.describe(
  `The whole value, as records show it, 1 to ${maxTextLength} visible ASCII characters.`,
)

const timePattern =
  /^(\d{4})-(\d{2})-(\d{2})(?:T((?:[01]\d|2[0-3]):[0-5]\d)(?::([0-5]\d)(?:\.(\d{1,9}))?)?(Z|[+-](?:[01]\d|2[0-3]):[0-5]\d))?$/

/**
 * An ISO 8601 time with a zone, or a date, which means midnight UTC. Stored times are whole milliseconds, so a time between
 * two milliseconds becomes the later one.
 */
export const timeParameter = z
  .string()
  .transform((text, context) => {
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
  .meta({
    anyOf: [{ format: 'date-time' }, { format: 'date' }],
    pattern: timePattern.source,
  })

/** A time in a path. Answers contain it in ISO 8601, whose years have four digits in UTC too. */
export const pathTimeParameter = timeParameter.refine(time => /^\d{4}-/.test(time.toISOString()), 'NOT_A_TIME')
