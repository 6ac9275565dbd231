import { maxStatementDays, settledAfterMs } from '@workspace-wallet/contract'
import type { Locale } from './locale.ts'

const headerReasons = { MISSING: 'is missing', REPEATED: 'was sent more than once', MALFORMED: 'is malformed' }

export const enUS: Locale = {
  tag: 'en-US',
  sentences: {
    GA2001: () => 'Send your API key in the X-Api-Key header.',
    GA2011: () => 'This API key does not exist. Check X-Api-Key; the key may have been deleted.',
    GA2021: ({ reason }) =>
      reason === 'EXPIRED'
        ? 'The API key has expired. Ask an administrator for a new one.'
        : 'The API key was disabled by an administrator.',
    GA2032: () => 'The workspace of this API key no longer exists.',
    GA2034: () => 'The owner of this API key is no longer a member of its workspace.',
    GA2013: details => {
      if (details.reason === 'OFF')
        return details.secondsOff < 0
          ? `X-Timestamp is ${-details.secondsOff} s behind server time; 60 s are allowed. Synchronize your clock.`
          : `X-Timestamp is ${details.secondsOff} s ahead of server time; 60 s are allowed. Synchronize your clock.`
      if (details.reason === 'MILLISECONDS')
        return `X-Timestamp looks like milliseconds. Send whole seconds, here ${details.seconds}.`
      if (details.reason === 'USED')
        return 'X-Nonce was already used. Use a new nonce for every request, including retries.'
      const form =
        details.header === 'X-Timestamp'
          ? 'the Unix time in whole seconds, digits only'
          : 'a unique string of 1 to 128 visible ASCII characters'
      return `${details.header} ${headerReasons[details.reason]}. It must be ${form}.`
    },
    GA2012: (details, locale) => {
      const mistake = details.mistake && locale.mistakes[details.mistake]
      if (details.reason !== 'DIFFERENT')
        return `${details.header} ${headerReasons[details.reason]}. ${mistake ?? 'It must be an HMAC-SHA256 in Base64, 44 characters.'}`
      if (mistake) return `The signature does not match. ${mistake}`
      const { method, path, timestamp, nonce, bodyHash } = details.seen
      return (
        'The signature does not match. The server signed these five lines, each separated by one newline: ' +
        `${method} | ${path} | ${timestamp} | ${nonce} | ${bodyHash}. Compare them with yours. If they are the same, check the API secret.`
      )
    },
    GA2022: ({ address }) => `Requests from ${address} are not allowed for this API key.`,
    GA2024: ({ scope }) => `The API key does not have the scope ${scope}. Ask an administrator to add it.`,
    '50090201': ({ method, path, nearest }) =>
      `There is no endpoint ${method} ${path}. ${nearest ? `Did you mean ${nearest}?` : 'Check the method, and the letter case and slashes of the path. docs/api.md lists all endpoints.'}`,
    S012: (fault, locale) => locale.fields[fault.reason](fault),
    S001: () => 'An internal error occurred. Report it with the X-Request-Id of this response.',
    S002: ({ retryAfterSeconds, reason }) =>
      reason === 'TOO_MANY_LISTS'
        ? `Too many lists of this workspace are waiting. Request one at a time, and retry in ${retryAfterSeconds} s with a new nonce.`
        : `The service is temporarily unavailable. Nothing was done. Retry in ${retryAfterSeconds} s with a new nonce.`,
    S003: details =>
      details
        ? `The outcome of this transfer is unknown. Retry with the same bizId, or get the order ${details.transferId}.`
        : 'The outcome of this request is unknown. Retry it with the same body and a new nonce: nothing is done twice.',
    S004: details =>
      details
        ? `This path does not exist. API paths begin with /api/v1/, and ${details.documentation} describes them.`
        : 'This path does not exist. API paths begin with /api/v1/.',
    S013: details =>
      'reason' in details
        ? 'The body arrived in too many small pieces. Send it with a Content-Length, or in chunks of 64 bytes or more.'
        : `The body exceeds the limit of ${details.limitBytes} bytes.`,
    S015: ({ reason }) =>
      reason === 'CONTENT_ENCODING'
        ? 'Send the body without a Content-Encoding.'
        : 'Send the body as JSON in UTF-8, with Content-Type: application/json.',
    S029: ({ retryAfterSeconds }) => `Too many requests. Retry in ${retryAfterSeconds} s.`,
    W001: ({ field }) => `This workspace has no such wallet (${field}).`,
    W002: ({ field, status }) =>
      `The wallet in ${field} is ${status === 'FROZEN' ? 'frozen' : 'closed'} and can neither send nor receive money.`,
    W003: () =>
      'The wallet holds money. Only an empty wallet can be closed: transfer its balance and release its holds first.',
    W004: () => 'An operator froze this wallet. Only an operator can unfreeze or close it.',
    T001: () => 'This workspace has no such transfer order.',
    T002: () =>
      'The amount exceeds the available balance of the source wallet. Amounts that holds reserve are not available. GET /api/v1/wallets/{walletId}/balance shows what is available.',
    T003: ({ currency, field, held }) =>
      `currency is ${currency}, but the ${field === 'reversesTransferId' ? 'transfer' : 'wallet'} in ${field} is in ${held}. Money moves only between wallets of one currency.`,
    T004: () => 'sourceWalletId and targetWalletId must be different wallets.',
    T005: ({ bizId }) =>
      `The bizId ${bizId} already names something else, or was sent with other fields. Use a new bizId for every new request, and the same fields to repeat one.`,
    T006: () => 'This transfer is a reversal, which cannot be reversed. Make a new transfer instead.',
    T007: ({ remaining }) => `The amount exceeds what is left to reverse. At most ${remaining} can be reversed.`,
    T008: ({ limit, remaining, resetsAt }) =>
      resetsAt === null
        ? `The amount exceeds the limit of ${limit} for each transfer and hold. Send a smaller amount, or ask the operator to raise the limit of the API key or wallet.`
        : `The amount exceeds what is left of the daily limit of ${limit}. Until ${resetsAt}, at most ${remaining} can be spent. Send a smaller amount, wait until then, or ask the operator to raise the limit of the API key or wallet.`,
    H001: () => 'This workspace has no such hold.',
    H002: ({ status }) => `The hold has ended (${status}). Only an open hold can be captured or released.`,
    H003: ({ remaining }) =>
      `The amount exceeds the remaining amount of the hold, ${remaining}. To pay more, add a transfer without a hold.`,
    H004: () => 'The hold is not on the source wallet. Transfer from the wallet of the hold.',
    E001: ({ position }) =>
      `The log ends at position ${position}. Send a position up to there. If you have already read later events, an earlier copy of the database was restored: read head, then the wallets, and continue from there.`,
    E002: () => 'This workspace has no such webhook.',
    E003: ({ limit }) => `A workspace has at most ${limit} webhooks. Delete one that you no longer need.`,
  },
  atIndex: (index, sentence) => `transfers[${index}]: ${sentence}`,
  fields: {
    REQUIRED: ({ field }) => `${field} is required.`,
    UNKNOWN: ({ field, nearest, limit }) =>
      `${field} is unknown. ${nearest ? `Did you mean ${nearest}?` : `Known names: ${limit}.`}`,
    REPEATED: ({ field }) => `${field} was sent more than once. Send it once.`,
    NOT_A_STRING: ({ field }) =>
      `${field} must be a string${/amount$/i.test(field) ? ', such as "1.00"' : ''}, in quotation marks.`,
    NOT_AN_OBJECT: ({ field }) => `${field} must be a JSON object.`,
    NOT_AN_ARRAY: ({ field }) => `${field} must be a JSON array.`,
    NOT_JSON: ({ field }) => `${field} must be JSON in UTF-8.`,
    EMPTY: ({ field }) => `${field} must not be empty or blank. An optional field can be left out.`,
    TOO_LONG: ({ field, limit }) => `${field} must have at most ${limit} characters.`,
    TOO_MANY: ({ field, limit }) => `${field} must have at most ${limit} items.`,
    TOO_MANY_VALUES: ({ field, limit }) =>
      `${field} has too many values: the names in it, its strings, numbers, objects and arrays may be at most ${limit} together.`,
    BAD_CHARACTER: ({ field }) =>
      `${field} contains U+0000 or half of a surrogate pair. All other Unicode characters are allowed.`,
    NOT_ONE_LINE: ({ field }) =>
      `${field} contains a control character, such as a newline or a tab. All other Unicode characters are allowed.`,
    NOT_VISIBLE_ASCII: ({ field }) =>
      `${field} may contain only visible ASCII characters, at most 64: letters, digits and punctuation, no spaces.`,
    NOT_AN_AMOUNT: ({ field }) =>
      `${field} must be a decimal such as "100.50": with a point and no comma, no sign, no exponent, no leading zeros.`,
    NOT_POSITIVE: ({ field }) => `${field} must be greater than zero.`,
    TOO_MANY_DECIMALS: ({ field, limit }) => `${field} must have at most ${limit} decimals, like its currency.`,
    TOO_MANY_DIGITS: ({ field }) => `${field} must have at most 38 digits.`,
    UNKNOWN_CURRENCY: ({ field }) => `${field} must be the upper-case code of a supported currency, such as USD.`,
    NOT_A_BIZ_ID: ({ field }) =>
      `${field} may contain only the letters A-Z and a-z, digits and . _ : - and must begin with a letter or digit. It has at most 64 characters.`,
    RESERVED: ({ field, limit }) => `${field} must not have one of these forms, which are reserved: ${limit}.`,
    NOT_AN_INTEGER: ({ field }) =>
      `${field} must be a whole number and not negative: digits only, in JSON without quotation marks.`,
    NOT_A_POSITION: ({ field }) =>
      `${field} must be a position, which is a whole number, digits only, or the word head.`,
    TOO_SMALL: ({ field, limit }) =>
      field === 'from'
        ? `A statement covers at most ${maxStatementDays} days: from must be at least ${limit}.`
        : `${field} must be at least ${limit}.`,
    TOO_LARGE: ({ field, limit }) =>
      field === 'from'
        ? `from must not be after to, which is ${limit}.`
        : field === 'at' || field === 'to'
          ? `${field} must be at least ${settledAfterMs / 1000} seconds ago: at most ${limit}.`
          : `${field} must be at most ${limit}.`,
    NOT_A_SORT: ({ field }) => `${field} must have the form field,asc or field,desc.`,
    NOT_SORTABLE: ({ field, limit }) => `${field} must name one of these fields: ${limit}.`,
    NOT_A_TIME: ({ field }) =>
      `${field} must be an ISO 8601 time with a zone, such as 2026-01-31T12:00:00Z, or a date.`,
    UNESCAPED_PLUS: ({ field }) => `${field} has a space where a zone such as +02:00 begins. Encode the plus as %2B.`,
    NOT_ONE_OF: ({ field, limit }) => `${field} must be one of ${limit}.`,
    NOT_A_URL: ({ field }) =>
      `${field} must be a URL such as https://example.com/events, of visible ASCII characters and without a backslash.`,
    HAS_CREDENTIALS: ({ field }) =>
      `${field} must not contain a user name or a password. Check the signature of a delivery instead.`,
    HAS_FRAGMENT: ({ field }) => `${field} must not contain a fragment. Remove the # and what follows it.`,
    NOT_HTTPS: ({ field }) => `${field} must begin with https://.`,
    PORT_NOT_ALLOWED: ({ field }) => `${field} must have port 443, or a port of 1024 or higher.`,
    ADDRESS_NOT_ALLOWED: ({ field }) =>
      `${field} contains an address that webhooks may not be sent to. Use one that is reachable from the public internet.`,
    TOO_SLOW: ({ field }) => `The ${field} did not arrive within 10 s. Retry with a new nonce.`,
    TOO_EXPENSIVE: ({ field, limit }) =>
      field.endsWith('Prefix')
        ? `${field} matches too many rows to list in ${limit} s. Use a longer prefix.`
        : field === 'from'
          ? `The period has too many flows to add up in ${limit} s. Request statements of shorter periods, and add up their totals.`
          : `${field} selects too many rows to list in ${limit} s. Narrow the list with createdFrom and createdTo.`,
  },
  mistakes: {
    QUERY_SIGNED: 'You signed the query string. Sign the path only, up to the question mark.',
    URL_SIGNED: 'You signed a URL. Sign only its path, from the slash after the host up to the question mark.',
    PATH_INCOMPLETE:
      'You signed only a part of the path. Sign all of it, with the slash and the /api/v1 at its beginning.',
    PATH_ENCODING:
      'You signed the path in a different percent-encoding. Sign the path exactly as it is in the request line.',
    TRAILING_SLASH:
      'You signed the path with a slash at its end but sent it without, or the reverse. Sign the path exactly as it is in the request line.',
    LOWER_CASE_METHOD: 'You signed the method in lower case. Sign it in upper case.',
    LOWER_CASE:
      'You signed the message in lower case. Sign the method in upper case, and the path and the nonce exactly as you send them.',
    TRAILING_NEWLINE: 'You signed a newline at the end of the message. Put newlines between the five lines only.',
    CRLF: 'You separated the lines of the message with CR LF. Separate them with LF only.',
    SEPARATOR: 'You did not separate the lines of the message with newlines. Separate them with one LF, the byte 0A.',
    LINE_ORDER: 'You signed the lines in a different order. The order is method, path, timestamp, nonce, body hash.',
    LINE_MISSING: 'You signed a message without one of its lines. Sign method, path, timestamp, nonce and body hash.',
    TIMESTAMP_MILLISECONDS: 'You signed the timestamp in milliseconds. Sign the text of X-Timestamp, in whole seconds.',
    TIMESTAMP_DIFFERENT:
      'You signed a different second than X-Timestamp has. Read the clock once, and use its value in the message and in the header.',
    BODY_HASH_MISSING:
      'You signed a message without the body hash. The fifth line is the SHA-256 of the body, without a body that of the empty string.',
    BODY_HASH_OF_NOTHING: 'You signed the hash of the empty string, but sent a body. Hash the bytes of the body.',
    BODY_HASH_OF_SOMETHING: 'You signed the hash of a body, but sent none. Without a body, hash the empty string.',
    BODY_HASH_UPPER_CASE: 'You signed the body hash in upper case. Write it in lower-case hexadecimal.',
    BODY_HASH_BASE64: 'You signed the body hash in Base64. Write it in lower-case hexadecimal.',
    BODY_NOT_HASHED: 'You signed the body itself. The fifth line is its SHA-256, in lower-case hexadecimal.',
    BODY_NEWLINE:
      'You hashed a body that ends differently: a newline at its end is missing or should not be there. Hash the bytes that you send.',
    BODY_SERIALIZED_AGAIN:
      'You hashed the same JSON with different spaces, escapes or order of fields. Serialize the body once; hash and send that text.',
    SECRET_WHITESPACE: 'The API secret that you used has a space or a newline at its beginning or end. Remove it.',
    SECRET_QUOTED: 'The API secret that you used has quotation marks around it. Remove them.',
    SECRET_DECODED: 'You decoded the API secret before you used it. The key of the HMAC is the text of the secret.',
    SECRET_ENCODED:
      'You encoded the API secret in Base64 before you used it. The key of the HMAC is the text of the secret.',
    SECRET_IS_API_KEY: 'You used the API key as the key of the HMAC. Use the API secret.',
    SECRET_AND_MESSAGE_SWAPPED:
      'You passed the API secret and the message to the HMAC in the wrong order. The secret is the key; the message is the data.',
    SIGNATURE_HEX:
      'The signature is right, but in hexadecimal. Send the 32 bytes of the HMAC in Base64, 44 characters.',
    SIGNATURE_HEX_IN_BASE64:
      'The signature is right, but it is the Base64 of hexadecimal digits. Send the 32 bytes of the HMAC in Base64, 44 characters.',
    SIGNATURE_BASE64URL:
      'The signature is right, but in the alphabet of Base64url. Send standard Base64, which has + and / instead of - and _, with the = at its end.',
    SIGNATURE_UNPADDED:
      'The signature is right, but the = at its end is missing. Send Base64 with padding, 44 characters.',
  },
}
