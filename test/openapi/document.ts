/** The OpenAPI document as a judge of answers: every one must be documented, to the last field and header. */
import { readFileSync } from 'node:fs'
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js'
import addFormats from 'ajv-formats'
import type { Answer } from './send.ts'

export type Schema = {
  $ref?: string
  type?: string
  const?: unknown
  enum?: unknown[]
  pattern?: string
  format?: string
  minLength?: number
  maxLength?: number
  minimum?: number
  maximum?: number
  properties?: Record<string, Schema>
  required?: string[]
  items?: Schema
  minItems?: number
  maxItems?: number
  uniqueItems?: boolean
  anyOf?: Schema[]
}
type Header = { required?: boolean; schema: Schema }
type Response = { headers: Record<string, Header>; content: Record<string, { schema: Schema }> }
export type Parameter = { in: 'path' | 'query' | 'header'; name: string; schema: Schema }
export type Operation = {
  operationId: string
  method: 'GET' | 'POST'
  path: string
  scope: string
  parameters: Parameter[]
  body: Schema | undefined
  responses: Record<string, Response>
  /** The codes of its failures. */
  codes: string[]
}

/** References to components are URIs in the text below, so that ajv finds them. */
const text = readFileSync(new URL('../../gateway/openapi.json', import.meta.url), 'utf8')
const document = JSON.parse(text.replaceAll('"#/components/schemas/', '"schema:'), (_, value: unknown) => value)
const schemas = document.components.schemas as Record<string, Schema>

/** A schema, with its reference resolved. */
export function resolve(schema: Schema): Schema {
  return schema.$ref ? { ...schemas[schema.$ref.slice('schema:'.length)], ...schema } : schema
}

function component<Component>(value: Component | { $ref: string }): Component {
  if (typeof value !== 'object' || value === null || !('$ref' in value)) return value as Component
  const [, , kind, name] = value.$ref.split('/')
  return document.components[kind!][name!]
}

export const operations: Operation[] = Object.entries(document.paths as Record<string, Record<string, never>>).flatMap(
  ([path, methods]) =>
    // biome-ignore lint/suspicious/noExplicitAny: the document is JSON
    Object.entries(methods).map(([method, operation]: [string, any]) => {
      const responses = Object.fromEntries(
        Object.entries(operation.responses).map(([status, response]) => {
          const { headers, content } = component(response) as Response
          const resolved = Object.entries(headers).map(([name, header]) => [name.toLowerCase(), component(header)])
          return [status, { headers: Object.fromEntries(resolved), content }]
        }),
      )
      return {
        operationId: operation.operationId,
        method: method.toUpperCase() as Operation['method'],
        path,
        scope: operation['x-required-scope'],
        parameters: operation.parameters.map(component),
        body: operation.requestBody?.content['application/json'].schema,
        responses,
        codes: Object.values(responses).flatMap(codesOf),
      }
    }),
)

/** The codes of failures that a response lists. */
function codesOf({ content }: Response): string[] {
  return (content['application/json']!.schema.properties!.code!.enum as string[] | undefined) ?? []
}

const requests = newValidator()
for (const [name, schema] of Object.entries(schemas)) requests.addSchema(schema, `schema:${name}`)

/** Clients ignore additional fields, so the document allows them; but the service does not send any. */
const answers = newValidator()
for (const [name, schema] of Object.entries(schemas)) answers.addSchema(closed(schema), `schema:${name}`)

function newValidator(): Ajv2020 {
  const ajv = new Ajv2020({ allErrors: true, strict: true, strictTypes: false })
  addFormats.default(ajv)
  return ajv.addVocabulary(['discriminator'])
}

function closed<Value>(schema: Value): Value {
  const close = (_: string, value: unknown) => {
    const isObjectSchema = typeof value === 'object' && value !== null && 'properties' in value
    return isObjectSchema ? { ...value, unevaluatedProperties: false } : value
  }
  return JSON.parse(JSON.stringify(schema), close)
}

const compiled = new Map<Schema, ValidateFunction>()
/** Whether a part of a request is valid. */
export function isValid(schema: Schema, value: unknown): boolean {
  const validate = compiled.get(schema) ?? requests.compile(schema)
  compiled.set(schema, validate)
  return validate(value)
}

const transportHeaders = ['connection', 'content-length', 'content-type', 'date', 'keep-alive', 'transfer-encoding']

/** What of an answer is not as documented. Empty if all is. */
export function undocumented({ responses }: Operation, { status, headers, body }: Answer): string[] {
  const response = responses[status]
  if (!response) return [`the status ${status} with ${body.code}`]
  const { schema } = response.content['application/json']!
  const validate = compiled.get(schema) ?? answers.compile(closed(schema))
  compiled.set(schema, validate)
  const faults = validate(body) ? [] : validate.errors!.map(({ instancePath, message }) => `${instancePath} ${message}`)
  const undeclared = Object.keys(headers).filter(name => !response.headers[name] && !transportHeaders.includes(name))
  const wrong = Object.entries(response.headers).filter(([name, { required, schema }]) => {
    const value = headers[name]
    if (value === undefined) return required
    return !isValid(schema, schema.type === 'integer' ? Number(value) : value)
  })
  const type =
    headers['content-type'] === 'application/json; charset=utf-8' ? [] : [`the type ${headers['content-type']}`]
  return [
    ...faults,
    ...type,
    ...undeclared.map(name => `the header ${name}`),
    ...wrong.map(([name]) => `${name} is wrong`),
  ]
}
