import { sign, verify } from 'node:crypto'
import { type ReceiptClaims, receiptClaims, receiptType } from '@workspace-wallet/contract'
import type { SigningKeys } from './signing-keys.ts'

/**
 * Signs claims with the first key: a compact JWS (RFC 7515). The claims have one serialization and Ed25519 is deterministic, so
 * the same key gives the same bytes.
 */
export function signReceipt(keys: SigningKeys, claims: ReceiptClaims): string {
  const [id, { privateKey }] = keys.entries().next().value!
  const signed = `${headerOf(id)}.${payloadOf(claims)}`
  return `${signed}.${sign(null, Buffer.from(signed), privateKey).toString('base64url')}`
}

/** The payload of a receipt with these claims, in base64url. */
export function payloadOf(claims: ReceiptClaims): string {
  return encoded(receiptClaims.parse(claims))
}

/** `payload`: that part of the receipt, in base64url. */
export type VerifiedReceipt =
  | { fault: 'MALFORMED' | 'UNKNOWN_KEY' | 'WRONG_SIGNATURE' }
  | { fault: null; claims: ReceiptClaims; payload: string }

/** Verifies a receipt. Its header must be exactly what `signReceipt` writes, so nobody can choose another algorithm. */
export function verifyReceipt(keys: SigningKeys, receipt: string): VerifiedReceipt {
  const [header = '', payload = '', signature = '', ...rest] = receipt.split('.')
  const { typ, kid } = (decoded(header) ?? {}) as { typ?: unknown; kid?: unknown }
  if (rest.length > 0 || typ !== receiptType || typeof kid !== 'string') return { fault: 'MALFORMED' }
  const key = keys.get(kid)
  if (!key) return { fault: 'UNKNOWN_KEY' }
  const bytes = Buffer.from(signature, 'base64url')
  const isSigned =
    header === headerOf(kid) &&
    bytes.toString('base64url') === signature &&
    verify(null, Buffer.from(`${header}.${payload}`), key.publicKey, bytes)
  if (!isSigned) return { fault: 'WRONG_SIGNATURE' }
  const claims = receiptClaims.safeParse(decoded(payload))
  return claims.success ? { fault: null, claims: claims.data, payload } : { fault: 'MALFORMED' }
}

function headerOf(keyId: string): string {
  return encoded({ alg: 'EdDSA', typ: receiptType, kid: keyId })
}

function encoded(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString('base64url')
}

/** Null if the text is no JSON in base64url. */
function decoded(text: string): unknown {
  try {
    return JSON.parse(Buffer.from(text, 'base64url').toString())
  } catch {
    return null
  }
}
