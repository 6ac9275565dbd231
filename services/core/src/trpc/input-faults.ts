import type { TRPCError } from '@trpc/server'
import { type FieldReason, issueLimit } from '@workspace-wallet/contract'
import { z } from 'zod'

/** One invalid value in the input of a call. `path` is empty for the input as a whole. */
export type InputFault = {
  /** Such as `order.amount` or `items[0].bizId`. */
  path: string
  /** What the value must be. */
  message: string
}

const maxFaults = 20
const maxTextLength = 200

/** The faults in the input of a call, at most 20; undefined if the call failed for another reason. */
export function findInputFaults({ code, cause }: TRPCError): InputFault[] | undefined {
  if (code !== 'BAD_REQUEST' || !(cause instanceof z.ZodError)) return undefined
  return cause.issues.slice(0, maxFaults).map(issue => ({
    path: z.core.toDotPath(issue.path).slice(0, maxTextLength),
    message: messageOf(issue).slice(0, maxTextLength),
  }))
}

/** One sentence that names all faults. */
export function describeFaults(faults: InputFault[], procedure = 'the procedure'): string {
  const described = faults.map(({ path, message }) => (path ? `${path}: ${message}` : message))
  return `the input of ${procedure} is invalid: ${described.join('; ')}`
}

/** Issues of fields that clients of the public API can also set have a FieldReason as message; all others have a phrase. */
function messageOf(issue: z.core.$ZodIssue): string {
  const { message } = issue
  return isReason(message) ? phrases[message](issueLimit(issue)) : message.replace(/^Invalid input: /, '')
}

/** Reasons that are in no schema: they are about JSON and queries, or depend on the configuration or on other rows. */
type OtherReason =
  | 'UNKNOWN'
  | 'NOT_AN_OBJECT'
  | 'TOO_MANY_VALUES'
  | 'NOT_JSON'
  | 'NOT_A_SORT'
  | 'NOT_SORTABLE'
  | 'NOT_A_TIME'
  | 'UNESCAPED_PLUS'
  | 'NOT_HTTPS'
  | 'PORT_NOT_ALLOWED'
  | 'ADDRESS_NOT_ALLOWED'
  | 'TOO_SLOW'
  | 'TOO_EXPENSIVE'
type Reason = Exclude<FieldReason, OtherReason>

function isReason(message: string): message is Reason {
  return Object.hasOwn(phrases, message)
}

const phrases: Record<Reason, (limit: string | number | undefined) => string> = {
  REQUIRED: () => 'is required',
  REPEATED: () => 'must differ from all others',
  NOT_A_STRING: () => 'must be a string',
  NOT_AN_ARRAY: () => 'must be an array',
  EMPTY: () => 'must not be empty',
  TOO_LONG: limit => `must have at most ${limit} characters`,
  TOO_MANY: limit => `must have at most ${limit} items`,
  BAD_CHARACTER: () => 'must not contain U+0000 or half of a surrogate pair',
  NOT_ONE_LINE: () => 'must not contain a control character, such as a newline',
  NOT_VISIBLE_ASCII: () => 'must consist of visible ASCII characters, without spaces',
  NOT_AN_AMOUNT: () => 'must be a decimal string such as "100.50", without sign, exponent or leading zero',
  NOT_POSITIVE: () => 'must be greater than zero',
  TOO_MANY_DECIMALS: limit => `must have at most ${limit} decimals, like its currency`,
  TOO_MANY_DIGITS: () => 'must have at most 38 digits',
  UNKNOWN_CURRENCY: () => 'must be the upper-case code of a supported currency, such as USD',
  NOT_A_BIZ_ID: () => 'must consist of letters, digits and . _ : - and begin with a letter or digit',
  RESERVED: limit => `must not have one of these reserved forms: ${limit}`,
  NOT_AN_INTEGER: () => 'must be an integer',
  NOT_A_POSITION: () => 'must be a position or "head"',
  TOO_SMALL: limit => `must be at least ${limit}`,
  TOO_LARGE: limit => `must be at most ${limit}`,
  NOT_A_URL: () => 'must be a URL such as https://example.com/events, of visible ASCII characters',
  HAS_CREDENTIALS: () => 'must not contain a user name or a password',
  HAS_FRAGMENT: () => 'must not contain a fragment',
  NOT_ONE_OF: limit => `must be one of ${limit}`,
}
