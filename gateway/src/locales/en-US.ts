import type { Locale } from './locale.ts'

const headerReasons = { MISSING: 'is missing', REPEATED: 'was sent more than once', MALFORMED: 'is malformed' }

export const enUS: Locale = {
  tag: 'en-US',
  sentences: {
    GA2001: () => 'Send your API key identifier in the X-Api-Key header.',
    GA2011: () => 'No API key has this identifier. Check X-Api-Key; the key may have been deleted.',
    GA2021: ({ reason }) =>
      reason === 'EXPIRED'
        ? 'The API key has expired. Ask an administrator for a new one.'
        : 'The API key was disabled by an administrator.',
    GA2032: () => 'The workspace of this API key no longer exists.',
    GA2034: () => 'The owner of this API key is no longer a member of its workspace.',
    GA2013: details => {
      if (details.reason === 'OFF')
        return details.secondsOff < 0
          ? `X-Timestamp is ${-details.secondsOff} s behind the server's clock; 60 s are allowed. Set your clock.`
          : `X-Timestamp is ${details.secondsOff} s ahead of the server's clock; 60 s are allowed. Set your clock.`
      if (details.reason === 'MILLISECONDS')
        return `X-Timestamp looks like milliseconds. Send whole seconds: ${details.seconds} for this time.`
      if (details.reason === 'USED')
        return 'X-Nonce was used before. Make a new one for every request, retries included.'
      const form =
        details.header === 'X-Timestamp'
          ? 'the Unix time in whole seconds, digits only'
          : 'a unique text of 1 to 128 visible ASCII characters'
      return `${details.header} ${headerReasons[details.reason]}. It must be ${form}.`
    },
    GA2012: details => {
      if (details.reason !== 'DIFFERENT')
        return `${details.header} ${headerReasons[details.reason]}. It must be the Base64 of an HMAC-SHA256, 44 characters.`
      const { method, path, timestamp, nonce, bodyHash } = details.seen
      return (
        'The signature does not match. The server signed these five lines, joined by one newline: ' +
        `${method} | ${path} | ${timestamp} | ${nonce} | ${bodyHash}. Compare them with yours; if they agree, check the secret.`
      )
    },
    GA2022: ({ address }) => `Requests from ${address} are not allowed for this API key.`,
    GA2024: ({ scope }) => `The API key lacks the scope ${scope}.`,
    '50090201': ({ method, path }) =>
      `There is no endpoint ${method} ${path}. Check the method, the letter case and slashes.`,
    S012: (fault, locale) => locale.fields[fault.reason](fault),
    S001: () => 'Something went wrong on our side. Tell us the X-Request-Id of this answer.',
    S002: ({ retryAfterSeconds, reason }) =>
      reason === 'TOO_MANY_LISTS'
        ? `Too many lists of this workspace are waiting. Ask for one at a time, and again in ${retryAfterSeconds} s, with a new nonce.`
        : `The service cannot take this request now. Nothing was done: send it again in ${retryAfterSeconds} s, with a new nonce.`,
    S003: ({ transferId }) =>
      `It is not known whether this transfer was made. Send it again with the same bizId, or ask for the order ${transferId}.`,
    S004: () => 'There is nothing at this path. The API begins with /api/v1/.',
    S013: ({ limitBytes }) => `The body is larger than ${limitBytes} bytes.`,
    S015: ({ reason }) =>
      reason === 'CONTENT_ENCODING'
        ? 'Send the body without a Content-Encoding.'
        : 'Send the body as JSON in UTF-8, with Content-Type: application/json.',
    S029: ({ retryAfterSeconds }) => `Too many requests. Try again in ${retryAfterSeconds} s.`,
    W001: ({ field }) => `This workspace has no such wallet (${field}).`,
    W002: ({ field, status }) =>
      `The wallet in ${field} is ${status === 'FROZEN' ? 'frozen' : 'closed'} and can neither pay nor receive.`,
    T001: () => 'This workspace has no such transfer order.',
    T002: () => 'The source wallet holds less than the amount.',
    T003: ({ currency }) => `Both wallets must be in ${currency}, the currency of the transfer.`,
    T004: () => 'sourceWalletId and targetWalletId must be two wallets.',
    T005: ({ bizId }) => `The bizId ${bizId} belongs to another transfer already. Use a new one for a new transfer.`,
  },
  fields: {
    REQUIRED: ({ field }) => `${field} is required.`,
    UNKNOWN: ({ field }) => `${field} is not known here. Check its spelling.`,
    REPEATED: ({ field }) => `${field} was given more than once.`,
    NOT_A_STRING: ({ field }) => `${field} must be a string.`,
    NOT_AN_OBJECT: ({ field }) => `${field} must be a JSON object.`,
    NOT_JSON: ({ field }) => `${field} is not JSON in UTF-8.`,
    EMPTY: ({ field }) => `${field} must not be empty.`,
    TOO_LONG: ({ field, limit }) => `${field} must have at most ${limit} characters.`,
    BAD_CHARACTER: ({ field }) => `${field} holds a character that is not allowed.`,
    NOT_AN_AMOUNT: ({ field }) =>
      `${field} must be a decimal such as "100.50": no sign, no exponent, no leading zeros.`,
    NOT_POSITIVE: ({ field }) => `${field} must be greater than zero.`,
    TOO_MANY_DECIMALS: ({ field, limit }) => `${field} has more than the ${limit} decimals of its currency.`,
    TOO_MANY_DIGITS: ({ field }) => `${field} has more than 38 digits.`,
    UNKNOWN_CURRENCY: ({ field }) => `${field} must be the upper-case code of a known currency, such as USD.`,
    NOT_A_BIZ_ID: ({ field }) => `${field} takes letters, digits and . _ : - and begins with a letter or digit.`,
    RESERVED: ({ field }) => `${field} must not be "wallet" and must not look like one of our own identifiers.`,
    NOT_AN_INTEGER: ({ field }) => `${field} must be a whole number, digits only.`,
    TOO_SMALL: ({ field, limit }) => `${field} must be at least ${limit}.`,
    TOO_LARGE: ({ field, limit }) => `${field} must be at most ${limit}.`,
    NOT_A_SORT: ({ field }) => `${field} must have the form field,asc or field,desc.`,
    NOT_SORTABLE: ({ field, limit }) => `${field} takes one of these fields: ${limit}.`,
    NOT_A_TIME: ({ field }) =>
      `${field} must be an ISO 8601 time with a zone, such as 2026-01-31T12:00:00Z, or a date.`,
    UNESCAPED_PLUS: ({ field }) =>
      `${field} has a space where a zone such as +02:00 begins: in a query, write the plus as %2B.`,
    NOT_ONE_OF: ({ field, limit }) => `${field} must be one of ${limit}.`,
    TOO_SLOW: ({ field }) => `The ${field} did not arrive in time.`,
    TOO_EXPENSIVE: ({ field, limit }) =>
      field.endsWith('Prefix')
        ? `${field} matches too many rows to list in ${limit} s. Use a longer prefix.`
        : `${field} selects too many rows to list in ${limit} s. Narrow the list with createdFrom and createdTo.`,
  },
}
