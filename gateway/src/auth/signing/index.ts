import { createHmac, hash, type KeyObject } from 'node:crypto'

/** The parts of the canonical message (section 5.2). */
export type SignedParts = {
  /** The HTTP method, in any case. */
  method: string
  /** The path as sent, percent-encoding unchanged, without the query string. */
  path: string
  /** The text of X-Timestamp: whole seconds since the Unix epoch. */
  timestamp: string
  /** The text of X-Nonce. */
  nonce: string
  /** See `bodyHash`. */
  bodyHash: string
}

/** The SHA-256 of the bytes of a body, in 64 lower-case hexadecimal digits. Without a body: that of the empty string. */
export function bodyHash(body: Uint8Array | string): string {
  return body.length === 0 ? emptyBodyHash : hash('sha256', body)
}

const emptyBodyHash = hash('sha256', '')

/** The five parts joined by LF, without a trailing one. */
export function canonicalMessage({ method, path, timestamp, nonce, bodyHash }: SignedParts): string {
  return `${method.toUpperCase()}\n${path}\n${timestamp}\n${nonce}\n${bodyHash}`
}

/** The signature: the Base64 of the HMAC-SHA256 of the canonical message. The key is the API secret as UTF-8 bytes. */
export function sign(secret: string | KeyObject, message: string): string {
  return createHmac('sha256', secret).update(message).digest('base64')
}
