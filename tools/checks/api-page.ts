import { z } from 'zod'
import type { Endpoint } from '../../gateway/src/api/endpoint.ts'
import { endpoints } from '../../gateway/src/api/endpoints.ts'
import { pageParameter, sizeParameter } from '../../gateway/src/api/list-query.ts'

/** The text of docs/api.md, generated from the table of endpoints. */
export function apiPage(): string {
  return [
    '# API reference',
    '',
    'Generated from `gateway/src/api/endpoints.ts` by `npm run golden`. Every request is signed: see',
    '[signing.md](signing.md). Answers have the envelope of section 2.1 of the [specification](specification.md), and the',
    'fields below are those of its `data`. [errors.md](errors.md) lists the error codes; an invalid parameter or field',
    'gets `S012`.',
    '',
    'Lists return a page: `content`, an array of records, and `page` with `size`, `number` (zero-based), `totalElements`',
    'and `totalPages`. A list rejects unknown query parameters; other endpoints ignore the query string.',
    '',
    '| Endpoint | Scope | |',
    '| --- | --- | --- |',
    ...endpoints.map(
      endpoint => `| \`${lineOf(endpoint)}\` | \`${endpoint.scope}\` | [${endpoint.title}](#${anchorOf(endpoint)}) |`,
    ),
    '',
    ...endpoints.flatMap(section),
  ].join('\n')
}

function section(endpoint: Endpoint): string[] {
  const { title, scope, params, query, body, answer } = endpoint
  const record = query ? (answer as z.ZodObject<{ content: z.ZodArray<z.ZodType> }>).shape.content.element : answer
  return [
    `## ${title}`,
    '',
    `\`${lineOf(endpoint)}\`, scope \`${scope}\`.`,
    '',
    ...table('Path parameter', fieldsOf(params)),
    ...table(
      'Query parameter',
      query ? fieldsOf(z.object({ page: pageParameter, size: sizeParameter, sort: query.sort, ...query.filters })) : [],
    ),
    ...table('Body field', body ? fieldsOf(body) : [], ({ isRequired }) => (isRequired ? 'required' : 'optional')),
    ...table(query ? 'Field of a record in `content`' : 'Field', fieldsOf(record)),
    ...exampleOf(endpoint),
  ]
}

type Field = { name: string; type: string; meaning: string; isRequired: boolean }

/** The fields of an object as clients send or receive them, in the order of the schema. */
function fieldsOf(schema: z.ZodType): Field[] {
  const { properties = {}, required = [] } = z.toJSONSchema(schema, { io: 'input', unrepresentable: 'any' })
  return Object.entries(properties).map(([name, property]) => {
    const json = property as z.core.JSONSchema.JSONSchema
    return { name, type: typeOf(json), meaning: meaningOf(json), isRequired: required.includes(name) }
  })
}

function typeOf({ type, anyOf }: z.core.JSONSchema.JSONSchema): string {
  const types = type ?? anyOf?.map(each => typeOf(each as z.core.JSONSchema.JSONSchema)) ?? 'any'
  return [types].flat().join(' or ')
}

/** Longer lists of allowed values are left to the description. */
const mostListedValues = 10

function meaningOf({ description, enum: values }: z.core.JSONSchema.JSONSchema): string {
  if (!values || values.length > mostListedValues) return description ?? ''
  const listed = values.map(value => `\`${value}\``).join(', ')
  return `${description ? `${description} ` : ''}${values.length > 1 ? 'One of' : 'Always'} ${listed}.`
}

function table(heading: string, fields: Field[], more?: (field: Field) => string): string[] {
  if (fields.length === 0) return []
  const columns = more ? [heading, 'Type', '', 'Meaning'] : [heading, 'Type', 'Meaning']
  return [
    row(columns),
    row(columns.map(() => '---')),
    ...fields.map(field => {
      const { name, type, meaning } = field
      return row([`\`${name}\``, type, ...(more ? [more(field)] : []), meaning])
    }),
    '',
  ]
}

function row(cells: string[]): string {
  return `| ${cells.join(' | ')} |`
}

function exampleOf({ method, path, example }: Endpoint): string[] {
  const { params = {}, query, body, data } = example
  const target = path.replace(/:(\w+)/g, (_, name: string) => params[name]!)
  return [
    '```',
    `${method} ${target}${query ? `?${query}` : ''}`,
    ...(body ? ['', JSON.stringify(body, null, 2)] : []),
    '```',
    '',
    '```json',
    JSON.stringify(data, null, 2),
    '```',
    '',
  ]
}

function lineOf({ method, path }: Endpoint): string {
  return `${method} ${path.replace(/:(\w+)/g, '{$1}')}`
}

/** The anchor that GitHub generates from a heading. */
function anchorOf({ title }: Endpoint): string {
  return title.toLowerCase().replaceAll("'", '').replaceAll(' ', '-')
}
