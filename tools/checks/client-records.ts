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
type Parameter = { $ref?: string; in: string; name: string; description?: string; schema: Schema }
export type Operation = { operationId: string; parameters?: Parameter[] }
export type OpenApiDocument = {
  paths: Record<string, Record<string, Operation>>
  components: { schemas: Record<string, Schema> }
}

/** A field of a type. Clients may leave out what they send, or give undefined. */
type Field = { name: string; type: string; description?: string | undefined; isOptional: boolean }

/** The text of packages/client/src/records.ts: the types of records, bodies, queries and error codes. */
export function clientRecords({ paths, components }: OpenApiDocument): string {
  const operations = Object.values(paths).flatMap(path => Object.values(path))
  const queries = new Map(operations.map(operation => [fieldsOfQuery(operation), operation] as const))
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
    ...Object.entries(components.schemas)
      .filter(([name]) => name !== 'Failure' && (name === 'EventPage' || !name.endsWith('Page')))
      .flatMap(([name, schema]) => [...declaration(name, schema), '']),
    ...uniqueQueries([...queries]).flatMap(([fields, { operationId }]) => [
      `/** The query of ${operationId}. */`,
      `export type ${operationId.replace(/^./, first => first.toUpperCase())}Query = ${objectType(fields)}`,
      '',
    ]),
    '/** The error codes at the time of this release. docs/errors.md describes them. */',
    'export type KnownErrorCode =',
    ...Object.entries(errorTable).map(([code, { http, message }]) => `  | '${code}' // ${http} ${message}`),
    '',
  ].join('\n')
}

/** Two operations on the same list have the same query: the first one names its type. */
function uniqueQueries<Each extends readonly [Field[], Operation]>(queries: Each[]): Each[] {
  const types = queries.map(([fields]) => JSON.stringify(fields))
  return queries.filter(([fields], at) => fields.length > 0 && types.indexOf(types[at]!) === at)
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

function fieldsOfQuery({ parameters = [] }: Operation): Field[] {
  return parameters
    .filter(parameter => parameter.in === 'query')
    .map(({ name, description, schema }) => {
      const item = schema.items && typeOf(schema.items)
      return {
        name,
        description,
        isOptional: true,
        type: item ? `OneOrMore<${item}>` : typeOf(schema),
      }
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
  return [`${indent}/** ${description.replace(/\[([^\]]+)\]\(#[^)]*\)/g, '$1').replaceAll('*/', '* /')} */`]
}
