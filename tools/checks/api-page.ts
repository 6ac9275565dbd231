import { z } from 'zod'
import type { Endpoint } from '../../gateway/src/api/endpoint.ts'
import { endpoints } from '../../gateway/src/api/endpoints.ts'
import { eventAnswer, eventDataAnswers } from '../../gateway/src/api/records.ts'
import { table } from './markdown.ts'
import { commandErrors, commonErrors, expensiveReads } from './openapi/endpoint-errors.ts'
import { examplePathOf, templateOf } from './openapi/endpoint-paths.ts'

/** The text of docs/api.md, generated from the table of endpoints. */
export function apiPage(): string {
  const lines = [
    '# API reference',
    '',
    'Generated from `gateway/src/api/endpoints.ts` by `npm run golden`. Every request is signed: see',
    '[signing.md](signing.md). Responses have the envelope of section 2.1 of the [specification](specification.md), and the',
    'fields below are those of its `data`. The same reference for programs is [openapi.json](../gateway/openapi.json), which the',
    'gateway serves at `/openapi.json`.',
    '',
    `Every endpoint can return ${codeList(commonErrors)}, and a POST endpoint also ${codeList(commandErrors)}. The errors below are`,
    'those of the endpoint itself. [errors.md](errors.md) explains the codes.',
    '',
    'Lists return a page: `content`, an array of records, and `page` with `size`, `number` (zero-based), `totalElements`',
    'and `totalPages`. Endpoints with query parameters reject unknown ones; all others ignore the query string.',
    ...expensiveReads,
    '',
    'A POST endpoint executes a command. If its outcome is unknown (`S003`), repeat it with the same body: its `bizId` prevents',
    "a second execution, and commands without a `bizId` can be repeated; each rotation of a webhook's secret gives another",
    'secret. After a transfer without a `bizId`, get the order that `X-Transfer-Id` names instead.',
    '',
    ...table(
      ['Endpoint', 'Scope', 'Description'],
      endpoints.map(endpoint => [
        `\`${lineOf(endpoint)}\``,
        `\`${endpoint.scope}\``,
        `[${endpoint.title}](#${anchorOf(endpoint)})`,
      ]),
    ),
    '',
    ...endpoints.flatMap(section),
  ]
  return withAnchors(lines.join('\n'))
}

function section(endpoint: Endpoint): string[] {
  const { title, description, scope, params, query, body, errors } = endpoint
  return [
    `## ${title}`,
    '',
    `\`${lineOf(endpoint)}\`, scope \`${scope}\`.`,
    '',
    description,
    '',
    ...fieldTable('Path parameter', fieldsOf(params)),
    ...fieldTable('Query parameter', query ? fieldsOf(z.object(query.parameters)) : []),
    ...fieldTable('Body field', body ? fieldsOf(body) : [], [
      ({ isRequired }) => (isRequired ? 'required' : 'optional'),
    ]),
    ...answerTables(endpoint),
    ...(errors.length > 0 ? [`Errors: ${codeList(errors)}.`, ''] : []),
    ...exampleOf(endpoint),
  ]
}

/** The fields of the records of a page; of any other response, and of the records in it. */
function answerTables({ answer }: Endpoint): string[] {
  const { shape } = answer as z.ZodObject<Record<string, z.ZodType>>
  return [
    ...('page' in shape ? [] : fieldTable('Field', fieldsOf(answer))),
    ...Object.entries(shape).flatMap(([name, field]) =>
      field instanceof z.ZodArray && field.element instanceof z.ZodObject
        ? fieldTable(`Field of a record in \`${name}\``, fieldsOf(field.element))
        : [],
    ),
    ...('lastEventId' in shape ? [...eventTable(), ...eventDataTables()] : []),
  ]
}

/** The fields that all events have. */
function eventTable(): string[] {
  const fields = fieldsOf(eventAnswer.options[0])
  const type = { type: 'string', meaning: meaningOf({ enum: Object.keys(eventDataAnswers) }) }
  const data = { type: 'object', meaning: 'By type: see below.' }
  const common = fields.map(field => ({
    ...field,
    ...(field.name === 'type' && type),
    ...(field.name === 'data' && data),
  }))
  return fieldTable('Field of a record in `content`', common)
}

/** The fields of `data` of an event, a table for the types that share them. */
function eventDataTables(): string[] {
  const types = Map.groupBy(Object.entries(eventDataAnswers), ([, schema]) => JSON.stringify(fieldsOf(schema)))
  return [...types.values()].flatMap(group => {
    const names = group.map(([type]) => `\`${type}\``).join(', ')
    return fieldTable(`Field of \`data\` of ${names}`, fieldsOf(group[0]![1]))
  })
}

function codeList(codes: readonly string[]): string {
  return codes.map(code => `\`${code}\``).join(', ')
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

function typeOf({ type, anyOf, oneOf }: z.core.JSONSchema.JSONSchema): string {
  const types = type ?? (anyOf ?? oneOf)?.map(each => typeOf(each as z.core.JSONSchema.JSONSchema)) ?? 'any'
  return [...new Set([types].flat())].join(' or ')
}

/** Longer lists of allowed values are left to the description. */
const mostListedValues = 10

function meaningOf({ description, enum: values }: z.core.JSONSchema.JSONSchema): string {
  if (!values || values.length > mostListedValues) return description ?? ''
  const listed = values.map(value => `\`${value}\``).join(', ')
  return `${description ? `${description} ` : ''}${values.length > 1 ? 'One of' : 'Always'} ${listed}.`
}

/** @param columns the cells of additional columns */
function fieldTable(heading: string, fields: Field[], columns: ((field: Field) => string)[] = []): string[] {
  if (fields.length === 0) return []
  const rows = fields.map(field => [
    `\`${field.name}\``,
    field.type,
    ...columns.map(column => column(field)),
    field.meaning,
  ])
  return [...table([heading, 'Type', ...columns.map(() => ''), 'Meaning'], rows), '']
}

function exampleOf(endpoint: Endpoint): string[] {
  const { query, body, data } = endpoint.example
  return [
    '```',
    `${endpoint.method} ${examplePathOf(endpoint)}${query ? `?${query}` : ''}`,
    ...(body ? ['', JSON.stringify(body, null, 2)] : []),
    '```',
    '',
    '```json',
    JSON.stringify(data, null, 2),
    '```',
    '',
  ]
}

function lineOf(endpoint: Endpoint): string {
  return `${endpoint.method} ${templateOf(endpoint)}`
}

/** Links to operations as links to their headings. */
function withAnchors(text: string): string {
  return text.replaceAll(/\]\(#([a-z]+[A-Z]\w*)\)/g, (_, id: string) => {
    const endpoint = endpoints.find(({ operationId }) => operationId === id)
    if (!endpoint) throw new Error(`There is no operation ${id}.`)
    return `](#${anchorOf(endpoint)})`
  })
}

/** The anchor that GitHub generates from a heading. */
function anchorOf({ title }: Endpoint): string {
  return title.toLowerCase().replaceAll("'", '').replaceAll(' ', '-')
}
