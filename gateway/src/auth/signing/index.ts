import { createHmac, hash, type KeyObject } from 'node:crypto'

/**
 * The signature of section 5.2. Free of dependencies, for clients, tests and the gateway alike.
 */
export type SignedParts = {
  /** The HTTP method, in any case. */
  method: string
  /** The path as sent, percent-encoding untouched, without the query string. */
  path: string
  /** The text of X-Timestamp: whole seconds since the Unix epoch. */
  timestamp: string
  /** The text of X-Nonce. */
  nonce: string
  /** See `bodyHash`. */
  bodyHash: string
}

/** SHA-256 of the exact bytes of a body (none: of the empty string), in 64 lower-case hexadecimal digits. */
export function bodyHash(body: Uint8Array | string): string {
  return body.length === 0 ? emptyBodyHash : hash('sha256', body)
}

const emptyBodyHash = hash('sha256', '')

/** Five components joined by LF, with none at the end. */
export function canonicalMessage({ method, path, timestamp, nonce, bodyHash }: SignedParts): string {
  return `${method.toUpperCase()}\n${path}\n${timestamp}\n${nonce}\n${bodyHash}`
}

/** Base64 of the HMAC-SHA256 of the canonical message under the API secret (its UTF-8 bytes). */
export function sign(secret: string | KeyObject, message: string): string {
  return createHmac('sha256', secret).update(message).digest('base64')
}
