import type { IncomingHttpHeaders } from 'node:http'
import { batchItemSchema, DomainError, type FieldFault } from '@workspace-wallet/contract'
import { countInJson } from '@workspace-wallet/runtime/count-in-json'
import type { z } from 'zod'
import { fieldFault, issueFault, shortened, unknownFault } from './field-fault.ts'
import { findRepeatedKey } from './repeated-key.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const jsonType = /^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/** What a body may have at most. A batch of 100 transfers has 2,000 values with all fields; more than this takes milliseconds to parse. */
const limits = { values: 4_096, depth: 4_096 }

/** The schema of a body: an object without unknown keys. Its error messages are FieldReasons. */
export type BodySchema = z.ZodObject

/**
 * Parses and validates a JSON body.
 *
 * @throws DomainError S015 for another media type, S012 for the first invalid field
 */
export function parseJsonBody<Schema extends BodySchema>(
  schema: Schema,
  headers: IncomingHttpHeaders,
  body: Buffer,
): z.output<Schema> {
  const encoding = headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new DomainError('S015', { reason: 'CONTENT_ENCODING' })
  if (!jsonType.test(headers['content-type'] ?? '')) throw new DomainError('S015', { reason: 'CONTENT_TYPE' })
  const { text, value } = parseJson(body)
  const result = schema.safeParse(value)
  if (!result.success) throw firstFault(schema, result.error.issues[0]!, value)
  const repeated = findRepeatedKey(text, value)
  if (repeated) throw fieldFault(fieldAt(repeated), 'REPEATED', indexAt(repeated))
  return result.data
}

function parseJson(body: Buffer): { text: string; value: unknown } {
  try {
    countInJson(body, limits)
  } catch {
    throw fieldFault('body', 'TOO_MANY_VALUES', { limit: limits.values })
  }
  try {
    const text = utf8.decode(body)
    return { text, value: JSON.parse(text) }
  } catch {
    throw fieldFault('body', 'NOT_JSON')
  }
}

/** S012 for an issue of zod. */
function firstFault(schema: BodySchema, issue: z.core.$ZodIssue, body: unknown): DomainError {
  const path = issue.path as Path
  const more = indexAt(path)
  if (issue.code === 'unrecognized_keys') {
    const [name] = issue.keys as [string]
    // Only items of a batch are objects within a body.
    const { shape } = path.length === 0 ? schema : batchItemSchema(valueAt(path, body))
    return unknownFault(fieldAt([...path, shortened(name)]), name, Object.keys(shape), more)
  }
  const field = fieldAt(path)
  const value = valueAt(path.slice(0, -1), body)
  const name = path.at(-1)
  if (typeof name === 'string' && !Object.hasOwn(value as object, name)) return fieldFault(field, 'REQUIRED', more)
  if (issue.code === 'invalid_type' && issue.expected === 'object') return fieldFault(field, 'NOT_AN_OBJECT', more)
  return issueFault(field, issue, more)
}

/** Where a value is in a body: keys, and indexes of arrays. */
type Path = readonly (string | number)[]

function valueAt(path: Path, body: unknown): unknown {
  return path.reduce<unknown>((parent, key) => (parent as Record<string, unknown>)[key], body)
}

/** The name of a field: `amount`, `transfers[3].amount`; `body` for the body itself. */
function fieldAt(path: Path): string {
  const name = path.map(key => (typeof key === 'number' ? `[${key}]` : `.${key}`)).join('')
  return name === '' ? 'body' : name.slice(1)
}

/** The item of a batch that a field belongs to. Other arrays, such as the types of a webhook, have no items of a batch. */
function indexAt([field, index]: Path): Pick<FieldFault, 'index'> {
  return field === 'transfers' && typeof index === 'number' ? { index } : {}
}
