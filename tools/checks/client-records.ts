import { errorTable } from '@workspace-wallet/contract'

/** The parts of JSON Schema that the OpenAPI document uses. */
export type Schema = {
  $ref?: string
  type?: string | string[]
  description?: string
  pattern?: string
  enum?: string[]
  const?: string
  anyOf?: Schema[]
  oneOf?: Schema[]
  items?: Schema
  properties?: Record<string, Schema>
  required?: string[]
  discriminator?: { mapping: Record<string, string> }
}
export type Parameter = { $ref?: string; in: string; name: string; description?: string; schema: Schema }
type Operation = { operationId: string; parameters?: Parameter[] }
export type OpenApiDocument = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

/** A field of a type. Clients may leave out what they send, or give undefined. */
type Field = { name: string; type: string; description?: string | undefined; isOptional: boolean }

/** The schemas of records and bodies, by their names. Clients declare pages themselves. */
export function recordSchemas({ components }: OpenApiDocument): [name: string, Schema][] {
  return Object.entries(components.schemas).filter(
    ([name]) => name !== 'Failure' && (name === 'EventPage' || !name.endsWith('Page')),
  )
}

/**
 * The queries of operations, by the names of their types. Two operations on the same list have the same query: the first one names
 * it.
 *
 * @param fieldsOf the parameters of a query, as the type has them
 */
export function queriesOf<Fields extends readonly unknown[]>(
  { paths }: OpenApiDocument,
  fieldsOf: (parameters: Parameter[]) => Fields,
): { name: string; operationId: string; fields: Fields }[] {
  const queries = new Map<string, { name: string; operationId: string; fields: Fields }>()
  for (const { operationId, parameters = [] } of Object.values(paths).flatMap(path => Object.values(path))) {
    const fields = fieldsOf(parameters.filter(parameter => parameter.in === 'query'))
    const form = JSON.stringify(fields)
    const name = `${operationId.replace(/^./, first => first.toUpperCase())}Query`
    if (fields.length > 0 && !queries.has(form)) queries.set(form, { name, operationId, fields })
  }
  return [...queries.values()]
}

/** Links to operations lead to the pages of the documentation, which a reader of the types does not have. */
export const withoutLinks = (description: string) => description.replace(/\[([^\]]+)\]\((?:\/docs)?#[^)]*\)/g, '$1')

/** The text of packages/client/src/records.ts: the types of records, bodies, queries and error codes. */
export function clientRecords(document: OpenApiDocument): string {
  return [
    '/**',
    ' * The records of the API, the bodies and queries that it takes, and its error codes. Generated from gateway/openapi.json by',
    ' * `npm run golden`.',
    ' *',
    ' * Amounts and balances are decimal strings, never numbers: a number cannot hold every amount exactly. Newer services may',
    ' * send further fields, types of events and error codes: ignore what you do not know.',
    ' */',
    "import type { OneOrMore, Sort } from './queries.ts'",
    '',
    ...recordSchemas(document).flatMap(([name, schema]) => [...declaration(name, schema), '']),
    ...queriesOf(document, fieldsOfQuery).flatMap(({ name, operationId, fields }) => [
      `/** The query of ${operationId}. */`,
      `export type ${name} = ${objectType(fields)}`,
      '',
    ]),
    '/** The error codes at the time of this release. docs/errors.md describes them. */',
    'export type KnownErrorCode =',
    ...Object.entries(errorTable).map(([code, { http, message }]) => `  | '${code}' // ${http} ${message}`),
    '',
  ].join('\n')
}

function declaration(name: string, schema: Schema): string[] {
  const { discriminator, oneOf = [] } = schema
  if (!discriminator) return [...comment(schema.description, ''), `export type ${name} = ${typeOf(schema)}`]
  return [
    ...comment(schema.description, ''),
    `export type ${name} =`,
    ...oneOf.map(each => `  | ${typeOf(each)}`),
    '',
    `export type ${name}Type = ${name}['type']`,
  ]
}

function fieldsOfQuery(parameters: Parameter[]): Field[] {
  return parameters.map(({ name, description, schema }) => {
    const item = schema.items && typeOf(schema.items)
    return { name, description, isOptional: true, type: item ? `OneOrMore<${item}>` : typeOf(schema) }
  })
}

function objectType(fields: Field[], indent = ''): string {
  const inner = `${indent}  `
  const lines = fields.flatMap(({ name, type, description, isOptional }) => [
    ...comment(description, inner),
    `${inner}${name}${isOptional ? '?' : ''}: ${type}${isOptional ? ' | undefined' : ''}`,
  ])
  return ['{', ...lines, `${indent}}`].join('\n')
}

function typeOf(schema: Schema, indent = ''): string {
  const { $ref, type, enum: values, const: value, items, properties, required = [] } = schema
  if ($ref) return $ref.slice($ref.lastIndexOf('/') + 1)
  if (value !== undefined) return `'${value}'`
  if (values) return enumType(values)
  if (schema.pattern) return patternType(schema.pattern)
  const union = schema.anyOf ?? schema.oneOf
  if (union) return [...new Set(union.map(each => typeOf(each, indent)))].join(' | ')
  if (properties)
    return objectType(
      Object.entries(properties).map(([name, property]) => ({
        name,
        description: property.description,
        type: typeOf(property, `${indent}  `),
        isOptional: !required.includes(name),
      })),
      indent,
    )
  if (items) return arrayOf(typeOf(items, indent))
  return [type]
    .flat()
    .map(each => (each === 'integer' ? 'number' : String(each)))
    .join(' | ')
}

const mostListedValues = 20

function enumType(values: string[]): string {
  // A newer service has more currencies.
  if (values.length > mostListedValues) return 'string'
  return values.includes('transfer.completed') ? 'EventType' : values.map(each => `'${each}'`).join(' | ')
}

/** `(createdAt|amount),(asc|desc)` is the type of a sort. All other patterns are those of strings. */
function patternType(pattern: string): string {
  const [, fields] = /^\^\(([\w|]+)\),\(asc\|desc\)\$$/.exec(pattern) ?? []
  if (!fields) return 'string'
  return `Sort<${enumType(fields.split('|'))}>`
}

function arrayOf(type: string): string {
  return / \| (?![^<]*>)/.test(type) ? `(${type})[]` : `${type}[]`
}

function comment(description: string | undefined, indent: string): string[] {
  if (!description) return []
  return [`${indent}/** ${withoutLinks(description).replaceAll('*/', '* /')} */`]
}
