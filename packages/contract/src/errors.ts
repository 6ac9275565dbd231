/**
 * The public error codes: one table from which the HTTP status, the symbolic message, the localized
 * sentences (gateway/src/locales) and docs/errors.md all come.
 *
 * Source: section 7 of the specification, and docs/contract for the codes it leaves open.
 */
export const errorTable = {
  GA2001: { http: 401, message: 'API_KEY_MISSING', when: 'The X-Api-Key header is missing or empty.' },
  GA2011: {
    http: 401,
    message: 'API_KEY_NOT_FOUND',
    when: 'The key is unknown or deleted, or its header was doubled.',
  },
  GA2021: { http: 403, message: 'API_KEY_DISABLED', when: 'The key was disabled or has expired.' },
  GA2032: { http: 404, message: 'WORKSPACE_NOT_FOUND', when: "The key's workspace is gone." },
  GA2034: { http: 403, message: 'NOT_WORKSPACE_MEMBER', when: "The key's owner is no longer a member." },
  GA2013: {
    http: 401,
    message: 'REQUEST_EXPIRED_OR_REPLAYED',
    when: 'The timestamp is missing, malformed, doubled or over 60 s off; or the nonce is missing, malformed, doubled or used.',
  },
  GA2012: {
    http: 401,
    message: 'SIGNATURE_INVALID',
    when: 'The signature is missing, malformed, doubled or does not match.',
  },
  GA2022: { http: 403, message: 'IP_NOT_WHITELISTED', when: "The client's address is not in the key's IP list." },
  GA2024: { http: 403, message: 'API_ACCESS_DENIED', when: 'The key lacks the scope that the endpoint requires.' },
  '50090201': { http: 403, message: 'API_ACCESS_DENIED', when: 'No such declared endpoint under /api/.' },
  S012: {
    http: 400,
    message: 'INVALID_PARAMETER',
    when: 'A malformed parameter, body or field, or an unknown field; a list that takes over 2 s to count and sort.',
  },
  S001: { http: 500, message: 'INTERNAL_ERROR', when: 'A bug of ours; the log holds the request id.' },
  S002: {
    http: 503,
    message: 'SERVICE_UNAVAILABLE',
    when: 'A part is out of reach or a queue is full. Certainly not done: safe to send again, after Retry-After.',
  },
  S003: {
    http: 504,
    message: 'OUTCOME_UNKNOWN',
    when: 'The answer to a create was lost inside: done or not. Sending it again under the same bizId tells; without one, X-Transfer-Id names the order to ask for.',
  },
  S004: { http: 404, message: 'NOT_FOUND', when: 'A path that does not begin with /api/ and is not ours.' },
  S013: { http: 413, message: 'PAYLOAD_TOO_LARGE', when: 'The body is over the limit.' },
  S015: {
    http: 415,
    message: 'UNSUPPORTED_MEDIA_TYPE',
    when: 'The body is not application/json, or has a Content-Encoding.',
  },
  S029: { http: 429, message: 'TOO_MANY_REQUESTS', when: 'Over a rate limit that the operator set; see Retry-After.' },
  W001: {
    http: 404,
    message: 'WALLET_NOT_FOUND',
    when: 'The wallet is absent, malformed, of another workspace or not a customer wallet.',
  },
  W002: { http: 409, message: 'WALLET_NOT_ACTIVE', when: 'Either wallet is frozen or closed.' },
  T001: {
    http: 404,
    message: 'TRANSFER_NOT_FOUND',
    when: 'The transfer order is absent, malformed or of another workspace.',
  },
  T002: { http: 422, message: 'INSUFFICIENT_BALANCE', when: 'The source wallet holds less than the amount.' },
  T003: { http: 422, message: 'CURRENCY_MISMATCH', when: 'The currency is not that of both wallets.' },
  T004: { http: 422, message: 'SAME_WALLET', when: 'Source and target are one wallet.' },
  T005: { http: 409, message: 'BIZ_ID_CONFLICT', when: 'The bizId names a different transfer already.' },
} as const satisfies Record<string, { http: number; message: string; when: string }>

export type ErrorCode = keyof typeof errorTable

/** False for the codes of a newer core, and for what is none. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorTable, code)
}

/** What is wrong with one field of a body or one parameter of a query. */
export const fieldReasons = [
  'REQUIRED',
  'UNKNOWN',
  'REPEATED',
  'NOT_A_STRING',
  'NOT_AN_OBJECT',
  'NOT_JSON',
  'EMPTY',
  'TOO_LONG',
  'BAD_CHARACTER',
  'NOT_AN_AMOUNT',
  'NOT_POSITIVE',
  'TOO_MANY_DECIMALS',
  'TOO_MANY_DIGITS',
  'UNKNOWN_CURRENCY',
  'NOT_A_BIZ_ID',
  'RESERVED',
  'NOT_AN_INTEGER',
  'TOO_SMALL',
  'TOO_LARGE',
  'NOT_A_SORT',
  'NOT_SORTABLE',
  'NOT_A_TIME',
  'UNESCAPED_PLUS',
  'NOT_ONE_OF',
  'TOO_SLOW',
  'TOO_EXPENSIVE',
] as const
export type FieldReason = (typeof fieldReasons)[number]

/** One faulty field. `limit` is the bound that was broken, or the values that are allowed. */
export type FieldFault = { field: string; reason: FieldReason; limit?: string | number }

/** A header of section 5.1 that cannot be used as sent. */
type HeaderFault = { header: string; reason: 'MISSING' | 'MALFORMED' | 'REPEATED' }

/** What a caller needs to mend the call, by code. Never a secret, never the expected signature. */
export interface ErrorDetails {
  GA2001: undefined
  GA2011: undefined
  GA2021: { reason: 'DISABLED' | 'EXPIRED' }
  GA2032: undefined
  GA2034: undefined
  GA2013:
    | HeaderFault
    | { header: 'X-Timestamp'; reason: 'OFF'; secondsOff: number }
    | { header: 'X-Timestamp'; reason: 'MILLISECONDS'; seconds: string }
    | { header: 'X-Nonce'; reason: 'USED' }
  GA2012:
    | HeaderFault
    | {
        header: 'X-Signature'
        reason: 'DIFFERENT'
        seen: { method: string; path: string; timestamp: string; nonce: string; bodyHash: string }
      }
  GA2022: { address: string }
  GA2024: { scope: string }
  '50090201': { method: string; path: string }
  S012: FieldFault
  S001: undefined
  S002: { retryAfterSeconds: number; reason?: 'TOO_MANY_LISTS' }
  S003: { transferId: string }
  S004: undefined
  S013: { limitBytes: number }
  S015: { reason: 'CONTENT_TYPE' | 'CONTENT_ENCODING' }
  S029: { retryAfterSeconds: number }
  W001: { field: string }
  W002: { field: string; status: string }
  T001: undefined
  T002: undefined
  T003: { currency: string }
  T004: undefined
  T005: { bizId: string }
}

/** A refusal with a public code. Thrown by core and by the gateway alike; it crosses the wire whole. */
export class DomainError<C extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'DomainError'
  readonly code: C
  readonly details: ErrorDetails[C]

  constructor(code: C, ...[details]: undefined extends ErrorDetails[C] ? [] : [ErrorDetails[C]]) {
    super(`${code} ${errorTable[code].message}`)
    this.code = code
    this.details = details as ErrorDetails[C]
  }

  /** An error that core has sent: its details were of its code's type when they left. */
  static fromDetails(code: ErrorCode, details: unknown): DomainError {
    return new DomainError<ErrorCode>(code, ...([details] as unknown as []))
  }
}

/** `instanceof` that keeps the type of the code. */
export function isDomainError(error: unknown): error is DomainError {
  return error instanceof DomainError
}

/** Codes of administrative refusals. They reach operators and internal services, never the public API. */
export type AdminErrorCode =
  | 'ALREADY_EXISTS'
  | 'NOT_FOUND'
  | 'NOT_ALLOWED'
  | 'WORKSPACE_HOLDS_MONEY'
  | 'WALLET_HOLDS_MONEY'
  | 'LEDGER_HALTED'

/** An administrative refusal: a code for programs, and a sentence that says how to mend it. */
export class AdminError extends Error {
  override readonly name = 'AdminError'
  readonly code: AdminErrorCode

  constructor(code: AdminErrorCode, sentence: string) {
    super(sentence)
    this.code = code
  }
}
