import type { IncomingHttpHeaders } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'
import type { z } from 'zod'
import { fieldFault, issueFault, shortened } from './field-fault.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const jsonType = /^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/** The schema of a body: one flat object of strings. Its error messages are FieldReasons. */
export type BodySchema = z.ZodType<Record<string, string | undefined>, Record<string, string | undefined>>

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
  if (!result.success) throw firstFault(result.error.issues[0]!, value)
  rejectRepeatedKeys(text, value as object)
  return result.data
}

function parseJson(body: Buffer): { text: string; value: unknown } {
  try {
    const text = utf8.decode(body)
    return { text, value: JSON.parse(text) }
  } catch {
    throw fieldFault('body', 'NOT_JSON')
  }
}

/**
 * Rejects repeated keys, of which JSON.parse silently keeps the last. A valid body is one flat object of strings, so it has
 * exactly two string literals per key, unless a key is repeated.
 */
function rejectRepeatedKeys(text: string, value: object): void {
  const literals = text.match(/"(?:[^"\\]|\\.)*"/g) ?? []
  const keys = Object.keys(value)
  if (literals.length === keys.length * 2) return
  const names = literals.map(literal => JSON.parse(literal) as string)
  const field = keys.find(key => names.filter(name => name === key).length > 1) ?? 'body'
  throw fieldFault(field, 'REPEATED')
}

/** S012 for an issue of zod. */
function firstFault(issue: z.core.$ZodIssue, value: unknown): DomainError {
  if (issue.code === 'unrecognized_keys') return fieldFault(shortened(issue.keys[0]!), 'UNKNOWN')
  const name = issue.path[0]
  if (name === undefined) return fieldFault('body', 'NOT_AN_OBJECT')
  const field = String(name)
  return Object.hasOwn(value as object, field) ? issueFault(field, issue) : fieldFault(field, 'REQUIRED')
}
