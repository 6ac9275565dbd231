import type { IncomingMessage } from 'node:http'
import { DomainError } from '@workspace-wallet/contract'
import type { z } from 'zod'
import { fieldFault, issueFault, shown } from './field-fault.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const jsonType = /^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/** A body of an endpoint: one flat object of strings, whose schema gives reasons as messages. */
export type BodySchema = z.ZodType<Record<string, string | undefined>, Record<string, string | undefined>>

/**
 * Parses a body, field by field. Its bytes were hashed and signed already.
 *
 * @throws DomainError S015, S012 naming the first faulty field
 */
export function parseJsonBody<Schema extends BodySchema>(
  schema: Schema,
  request: IncomingMessage,
  body: Buffer,
): z.output<Schema> {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new DomainError('S015', { reason: 'CONTENT_ENCODING' })
  if (!jsonType.test(request.headers['content-type'] ?? '')) throw new DomainError('S015', { reason: 'CONTENT_TYPE' })
  const { text, value } = parseJson(body)
  const result = schema.safeParse(value)
  if (!result.success) throw firstFault(result.error.issues[0]!, value)
  refuseRepeatedKeys(text, value as object)
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
 * JSON.parse keeps the last of two equal keys and says nothing. Once a body is known to be one flat object of
 * strings, it holds exactly two string literals per key; more means that a key came twice.
 */
function refuseRepeatedKeys(text: string, value: object): void {
  const literals = text.match(/"(?:[^"\\]|\\.)*"/g) ?? []
  const keys = Object.keys(value)
  if (literals.length === keys.length * 2) return
  const names = literals.map(literal => JSON.parse(literal) as string)
  const field = keys.find(key => names.filter(name => name === key).length > 1) ?? 'body'
  throw fieldFault(field, 'REPEATED')
}

/** The first fault that zod found, as ours. */
function firstFault(issue: z.core.$ZodIssue, value: unknown): DomainError {
  if (issue.code === 'unrecognized_keys') return fieldFault(shown(issue.keys[0]!), 'UNKNOWN')
  const name = issue.path[0]
  if (name === undefined) return fieldFault('body', 'NOT_AN_OBJECT')
  const field = String(name)
  return Object.hasOwn(value as object, field) ? issueFault(field, issue) : fieldFault(field, 'REQUIRED')
}
