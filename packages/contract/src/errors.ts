/** One row of the error table. `when`: the condition, for docs/errors.md. */
function error<const Status extends number>(http: Status, message: string, when: string) {
  return { http, message, when }
}

/**
 * The public error codes. The HTTP status, the symbolic message, the localized sentences (gateway/src/locales) and
 * docs/errors.md come from this table. See section 7 of docs/specification.md.
 */
export const errorTable = {
  GA2001: error(401, 'API_KEY_MISSING', 'The X-Api-Key header is missing or empty.'),
  GA2011: error(401, 'API_KEY_NOT_FOUND', 'The API key is unknown or deleted, or X-Api-Key was sent more than once.'),
  GA2021: error(403, 'API_KEY_DISABLED', 'The API key is disabled or has expired.'),
  GA2032: error(404, 'WORKSPACE_NOT_FOUND', 'The workspace of the API key no longer exists.'),
  GA2034: error(403, 'NOT_WORKSPACE_MEMBER', 'The owner of the API key is no longer a member of the workspace.'),
  GA2013: error(
    401,
    'REQUEST_EXPIRED_OR_REPLAYED',
    'X-Timestamp is missing, malformed, sent more than once, or more than 60 s off. Or X-Nonce is missing, malformed, sent more than once, or already used.',
  ),
  GA2012: error(
    401,
    'SIGNATURE_INVALID',
    'X-Signature is missing, malformed, sent more than once, or does not match the request.',
  ),
  GA2022: error(403, 'IP_NOT_WHITELISTED', "The client's address is not in the IP list of the API key."),
  GA2024: error(403, 'API_ACCESS_DENIED', 'The API key does not have a scope that the request requires.'),
  '50090201': error(403, 'API_ACCESS_DENIED', 'There is no such endpoint under /api/.'),
  S012: error(400, 'INVALID_PARAMETER', 'A parameter, the body or a field of the body is malformed or unknown.'),
  S001: error(500, 'INTERNAL_ERROR', 'A bug in the service. The log contains the request ID.'),
  S002: error(
    503,
    'SERVICE_UNAVAILABLE',
    'Part of the service is unavailable, or a queue is full. Nothing was done: you can retry after the time in Retry-After.',
  ),
  S003: error(
    504,
    'OUTCOME_UNKNOWN',
    'The response to a command was lost: the command may or may not have been executed. Retry it with the same body: its bizId prevents a second execution. After a create without a bizId, get the order that X-Transfer-Id names instead.',
  ),
  S004: error(404, 'NOT_FOUND', 'The path does not begin with /api/, and the service has nothing else there.'),
  S013: error(413, 'PAYLOAD_TOO_LARGE', 'The body is larger than the limit, or arrives in too many small pieces.'),
  S015: error(415, 'UNSUPPORTED_MEDIA_TYPE', 'The body is not application/json, or has a Content-Encoding.'),
  S029: error(
    429,
    'TOO_MANY_REQUESTS',
    'A rate limit that the operator set is exceeded. Retry after the time in Retry-After.',
  ),
  W001: error(
    404,
    'WALLET_NOT_FOUND',
    'The wallet does not exist, its ID is malformed, or it belongs to another workspace or to the system.',
  ),
  W002: error(409, 'WALLET_NOT_ACTIVE', 'One of the wallets is frozen or closed.'),
  W003: error(409, 'WALLET_NOT_EMPTY', 'The wallet holds money, and only an empty wallet can be closed.'),
  W004: error(
    409,
    'FROZEN_BY_OPERATOR',
    'An operator froze the wallet, and only an operator can unfreeze or close it.',
  ),
  T001: error(
    404,
    'TRANSFER_NOT_FOUND',
    'The transfer order does not exist, its ID is malformed, or it belongs to another workspace.',
  ),
  T002: error(
    422,
    'INSUFFICIENT_BALANCE',
    'The amount exceeds the available balance of the source wallet: its balance minus what holds reserve.',
  ),
  T003: error(422, 'CURRENCY_MISMATCH', 'The currency is not the currency of the wallets.'),
  T004: error(422, 'SAME_WALLET', 'Source and target are the same wallet.'),
  T005: error(
    409,
    'BIZ_ID_CONFLICT',
    'The bizId is a duplicate: it was used before for something else, or with other fields.',
  ),
  T006: error(409, 'NOT_REVERSIBLE', 'The transfer is a reversal itself. Make a new transfer instead.'),
  T007: error(422, 'REVERSAL_EXCEEDED', 'The amount exceeds what is left to reverse.'),
  T008: error(
    422,
    'LIMIT_EXCEEDED',
    'The amount exceeds a spending limit that an operator set for the API key or the wallet.',
  ),
  H001: error(
    404,
    'HOLD_NOT_FOUND',
    'The hold does not exist, its ID is malformed, or it belongs to another workspace.',
  ),
  H002: error(409, 'HOLD_NOT_OPEN', 'The hold is captured, released or expired.'),
  H003: error(422, 'HOLD_EXCEEDED', 'The amount exceeds the remaining amount of the hold.'),
  H004: error(422, 'HOLD_OF_OTHER_WALLET', 'The hold is not on the source wallet.'),
  E001: error(
    409,
    'CURSOR_AHEAD',
    'The log ends before this position: it is too high, or an earlier copy of the database was restored.',
  ),
  E002: error(
    404,
    'WEBHOOK_NOT_FOUND',
    'The webhook does not exist or is deleted, its ID is malformed, or it belongs to another workspace.',
  ),
  E003: error(409, 'TOO_MANY_WEBHOOKS', 'The workspace already has 16 webhooks.'),
}

export type ErrorCode = keyof typeof errorTable

/** Whether a code is in the error table. A newer core may return codes that are not. */
export function isErrorCode(code: string): code is ErrorCode {
  return Object.hasOwn(errorTable, code)
}

/** What can be wrong with one field of a body or one parameter of a query. */
export const fieldReasons = [
  'REQUIRED',
  'UNKNOWN',
  'REPEATED',
  'NOT_A_STRING',
  'NOT_AN_OBJECT',
  'NOT_AN_ARRAY',
  'NOT_JSON',
  'EMPTY',
  'TOO_LONG',
  'TOO_MANY',
  'TOO_MANY_VALUES',
  'BAD_CHARACTER',
  'NOT_ONE_LINE',
  'NOT_VISIBLE_ASCII',
  'NOT_AN_AMOUNT',
  'NOT_POSITIVE',
  'TOO_MANY_DECIMALS',
  'TOO_MANY_DIGITS',
  'UNKNOWN_CURRENCY',
  'NOT_A_BIZ_ID',
  'RESERVED',
  'NOT_AN_INTEGER',
  'NOT_A_POSITION',
  'TOO_SMALL',
  'TOO_LARGE',
  'NOT_A_SORT',
  'NOT_SORTABLE',
  'NOT_A_TIME',
  'UNESCAPED_PLUS',
  'NOT_ONE_OF',
  'NOT_A_URL',
  'HAS_CREDENTIALS',
  'HAS_FRAGMENT',
  'NOT_HTTPS',
  'PORT_NOT_ALLOWED',
  'ADDRESS_NOT_ALLOWED',
  'TOO_SLOW',
  'TOO_EXPENSIVE',
] as const
export type FieldReason = (typeof fieldReasons)[number]

/**
 * One invalid field. `limit`: the bound that it exceeds, or the values or names that are allowed. `nearest`: the known name
 * that an unknown one is probably meant to be. `index`: the place of its item in a batch, if it belongs to one.
 */
export type FieldFault = {
  field: string
  reason: FieldReason
  limit?: string | number
  nearest?: string
  index?: number
}

/** Known mistakes of clients in the signature of section 5.2. `gateway/src/auth/signing/mistakes.ts` finds them. */
export const signingMistakes = [
  'QUERY_SIGNED',
  'URL_SIGNED',
  'PATH_INCOMPLETE',
  'PATH_ENCODING',
  'TRAILING_SLASH',
  'LOWER_CASE_METHOD',
  'LOWER_CASE',
  'TRAILING_NEWLINE',
  'CRLF',
  'SEPARATOR',
  'LINE_ORDER',
  'LINE_MISSING',
  'TIMESTAMP_MILLISECONDS',
  'TIMESTAMP_DIFFERENT',
  'BODY_HASH_MISSING',
  'BODY_HASH_OF_NOTHING',
  'BODY_HASH_OF_SOMETHING',
  'BODY_HASH_UPPER_CASE',
  'BODY_HASH_BASE64',
  'BODY_NOT_HASHED',
  'BODY_NEWLINE',
  'BODY_SERIALIZED_AGAIN',
  'SECRET_WHITESPACE',
  'SECRET_QUOTED',
  'SECRET_DECODED',
  'SECRET_ENCODED',
  'SECRET_IS_API_KEY',
  'SECRET_AND_MESSAGE_SWAPPED',
  'SIGNATURE_HEX',
  'SIGNATURE_HEX_IN_BASE64',
  'SIGNATURE_BASE64URL',
  'SIGNATURE_UNPADDED',
] as const
export type SigningMistake = (typeof signingMistakes)[number]

/** Why a header of section 5.1 is invalid. */
type HeaderFault = { header: string; reason: 'MISSING' | 'MALFORMED' | 'REPEATED' }

/** What a caller needs to fix the call, by code. Never contains a secret or the expected signature. */
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
  /** `mistake`: the one that the client made, if the request asks for a sentence and the mistake is a known one. */
  GA2012:
    | (HeaderFault & { mistake?: SigningMistake })
    | {
        header: 'X-Signature'
        reason: 'DIFFERENT'
        seen: { method: string; path: string; timestamp: string; nonce: string; bodyHash: string }
        mistake?: SigningMistake
      }
  GA2022: { address: string }
  GA2024: { scope: string }
  /** `nearest`: the method and path that are probably meant. */
  '50090201': { method: string; path: string; nearest?: string }
  S012: FieldFault
  S001: undefined
  S002: { retryAfterSeconds: number; reason?: 'TOO_MANY_LISTS' }
  /** `transferId`: of a create. */
  S003: { transferId: string } | undefined
  /** `documentation`: the path of the API reference, if it is served. */
  S004: { documentation: string } | undefined
  S013: { limitBytes: number } | { reason: 'TOO_MANY_PIECES' }
  S015: { reason: 'CONTENT_TYPE' | 'CONTENT_ENCODING' }
  S029: { retryAfterSeconds: number }
  W001: { field: string }
  W002: { field: string; status: string }
  W003: undefined
  W004: undefined
  T001: undefined
  T002: undefined
  /** `currency`: of the request. `field`: which names a wallet, or a transfer to reverse, in the currency `held`. */
  T003: { currency: string; field: string; held: string }
  T004: undefined
  T005: { bizId: string }
  T006: undefined
  /** Amounts with the decimals of their currency. */
  T007: { remaining: string }
  /** `resetsAt`: when `remaining` is `limit` again, in ISO 8601; null for a limit of each transfer. */
  T008: { limit: string; remaining: string; resetsAt: string | null }
  H001: undefined
  H002: { status: string }
  H003: { remaining: string }
  H004: undefined
  /** `position`: where the log ends. */
  E001: { position: number }
  E002: undefined
  E003: { limit: number }
}

/** An error with a public code. Core and the gateway throw it; between them, code and details are preserved. */
export class DomainError<C extends ErrorCode = ErrorCode> extends Error {
  override readonly name = 'DomainError'
  readonly code: C
  readonly details: ErrorDetails[C]

  constructor(code: C, ...[details]: undefined extends ErrorDetails[C] ? [ErrorDetails[C]?] : [ErrorDetails[C]]) {
    super(`${code} ${errorTable[code].message}`)
    this.code = code
    this.details = details as ErrorDetails[C]
  }

  /** Recreates an error whose `details` have the type of the code. `parseDomainError` checks what a core sent. */
  static fromDetails(code: ErrorCode, details: unknown): DomainError {
    return new DomainError<ErrorCode>(code, ...([details] as unknown as []))
  }
}

/** The error of one item of a batch: its details also have the zero-based place of the item. */
export function atBatchIndex({ code, details }: DomainError, index: number): DomainError {
  return DomainError.fromDetails(code, { ...details, index })
}

/** The place of the item of a batch that an error is about; undefined if it is not about one item. */
export function batchIndexOf({ details }: DomainError): number | undefined {
  return (details as { index?: number } | undefined)?.index
}

/** Like `instanceof`, but keeps the type of the code. */
export function isDomainError(error: unknown): error is DomainError {
  return error instanceof DomainError
}

/** Codes of administrative errors. They reach operators and internal services, never the public API. */
export type AdminErrorCode =
  | 'ALREADY_EXISTS'
  | 'NOT_FOUND'
  | 'NOT_ALLOWED'
  | 'WORKSPACE_HOLDS_MONEY'
  | 'WALLET_HOLDS_MONEY'
  | 'LEDGER_HALTED'
  | 'BLOCKED'

/** An administrative error: a code for programs, and a sentence for people that says how to fix it. */
export class AdminError extends Error {
  override readonly name = 'AdminError'
  readonly code: AdminErrorCode

  constructor(code: AdminErrorCode, sentence: string) {
    super(sentence)
    this.code = code
  }
}
