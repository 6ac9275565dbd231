import { z } from 'zod'
import { DomainError, type ErrorCode, type ErrorDetails, fieldReasons, isErrorCode, signingMistakes } from './errors.ts'
import { isId } from './ids.ts'

/** Longer than any text in details. */
const text = z.string().max(1_024)
const count = z.int().min(0)

/** Details with these fields, and the place of the item of a batch. Other fields, which a newer core may send, are dropped. */
function detailsOf<Shape extends z.ZodRawShape>(shape: Shape) {
  return z.object({ ...shape, index: count.optional() })
}

const none = detailsOf({}).optional()
const header = { header: text, mistake: z.enum(signingMistakes).optional() }
const missing = detailsOf({ ...header, reason: z.enum(['MISSING', 'MALFORMED', 'REPEATED']) })

/** What `ErrorDetails` says of the values that schemas return: optional fields may be undefined. */
type Parsed<Details> = Details extends object
  ? { [Name in keyof Details]: Details[Name] | (object extends Pick<Details, Name> ? undefined : never) }
  : Details | { index?: number | undefined }

const detailSchemas: { [Code in ErrorCode]: z.ZodType<Parsed<ErrorDetails[Code]>> } = {
  GA2001: none,
  GA2011: none,
  GA2021: detailsOf({ reason: z.enum(['DISABLED', 'EXPIRED']) }),
  GA2032: none,
  GA2034: none,
  GA2013: z.union([
    missing,
    detailsOf({ header: z.literal('X-Timestamp'), reason: z.literal('OFF'), secondsOff: z.number() }),
    detailsOf({ header: z.literal('X-Timestamp'), reason: z.literal('MILLISECONDS'), seconds: text }),
    detailsOf({ header: z.literal('X-Nonce'), reason: z.literal('USED') }),
  ]),
  GA2012: z.union([
    missing,
    detailsOf({
      ...header,
      header: z.literal('X-Signature'),
      reason: z.literal('DIFFERENT'),
      seen: z.object({ method: text, path: text, timestamp: text, nonce: text, bodyHash: text }),
    }),
  ]),
  GA2022: detailsOf({ address: text }),
  GA2024: detailsOf({ scope: text }),
  '50090201': detailsOf({ method: text, path: text, nearest: text.optional() }),
  S012: detailsOf({
    field: text,
    reason: z.enum(fieldReasons),
    limit: z.union([text, z.number()]).optional(),
    nearest: text.optional(),
  }),
  S001: none,
  // The reason of a newer core only changes the sentence.
  S002: detailsOf({ retryAfterSeconds: count, reason: z.literal('TOO_MANY_LISTS').optional().catch(undefined) }),
  S003: detailsOf({ transferId: text.refine(id => isId('transfer', id)) }).optional(),
  S004: detailsOf({ documentation: text }).optional(),
  S013: z.union([detailsOf({ limitBytes: count }), detailsOf({ reason: z.literal('TOO_MANY_PIECES') })]),
  S015: detailsOf({ reason: z.enum(['CONTENT_TYPE', 'CONTENT_ENCODING']) }),
  S029: detailsOf({ retryAfterSeconds: count }),
  W001: detailsOf({ field: text }),
  W002: detailsOf({ field: text, status: text }),
  W003: none,
  W004: none,
  T001: none,
  T002: none,
  T003: detailsOf({ currency: text, field: text, held: text }),
  T004: none,
  T005: detailsOf({ bizId: text }),
  T006: none,
  T007: detailsOf({ remaining: text }),
  T008: detailsOf({ limit: text, remaining: text, resetsAt: text.nullable() }),
  H001: none,
  H002: detailsOf({ status: text }),
  H003: detailsOf({ remaining: text }),
  H004: none,
  E001: detailsOf({ position: count }),
  E002: none,
  E003: detailsOf({ limit: count }),
}

/**
 * Recreates an error from what a core sent, which becomes headers and sentences. Null if this version does not know the code, or the details
 * are not those of the code.
 */
export function parseDomainError(code: unknown, details: unknown): DomainError | null {
  if (typeof code !== 'string' || !isErrorCode(code)) return null
  const parsed = detailSchemas[code].safeParse(details)
  return parsed.success ? DomainError.fromDetails(code, parsed.data) : null
}
