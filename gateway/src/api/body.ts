import type { IncomingMessage } from 'node:http'
import {
  type CreateTransferBody,
  createTransferBody,
  DomainError,
  type FieldReason,
  fieldReasons,
} from '@workspace-wallet/contract'
import type { z } from 'zod'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })
const jsonType = /^application\/json[ \t]*(;[ \t]*charset="?utf-8"?[ \t]*)?$/i

/**
 * The body of a create call, checked field by field. It was hashed and signed as bytes already; here it is read.
 *
 * @throws DomainError S015, S012 naming the first faulty field
 */
export function parseCreateBody(request: IncomingMessage, body: Buffer): CreateTransferBody {
  const encoding = request.headers['content-encoding']
  if (encoding !== undefined && encoding.toLowerCase() !== 'identity')
    throw new DomainError('S015', { reason: 'CONTENT_ENCODING' })
  if (!jsonType.test(request.headers['content-type'] ?? '')) throw new DomainError('S015', { reason: 'CONTENT_TYPE' })
  const { text, value } = parseJson(body)
  const result = createTransferBody.safeParse(value)
  if (!result.success) throw fieldError(result.error.issues[0]!, value)
  refuseRepeatedKeys(text, value as object)
  return result.data
}

function parseJson(body: Buffer): { text: string; value: unknown } {
  try {
    const text = utf8.decode(body)
    return { text, value: JSON.parse(text) }
  } catch {
    throw new DomainError('S012', { field: 'body', reason: 'NOT_JSON' })
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
  throw new DomainError('S012', { field, reason: 'REPEATED' })
}

/** The first fault that zod found, as ours. Our schemas give the reason as message. */
function fieldError(issue: z.core.$ZodIssue, value: unknown): DomainError {
  if (issue.code === 'unrecognized_keys')
    return new DomainError('S012', { field: shown(issue.keys[0]!), reason: 'UNKNOWN' })
  const name = issue.path[0]
  if (name === undefined) return new DomainError('S012', { field: 'body', reason: 'NOT_AN_OBJECT' })
  const field = String(name)
  if (!Object.hasOwn(value as object, field)) return new DomainError('S012', { field, reason: 'REQUIRED' })
  const limit = limitOf(issue)
  const reason = issue.message as FieldReason
  if (!fieldReasons.includes(reason)) throw new Error(`a schema gives no reason for ${field}: ${issue.message}`)
  return new DomainError('S012', limit === undefined ? { field, reason } : { field, reason, limit })
}

/** The bound that was broken, where there is one. */
function limitOf(issue: z.core.$ZodIssue): number | undefined {
  if (issue.code === 'too_big') return Number(issue.maximum)
  return issue.code === 'custom' ? (issue.params?.limit as number | undefined) : undefined
}

/** A name that a client made up, short enough to repeat. */
export function shown(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}…` : name
}
