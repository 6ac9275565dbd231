/** What a receipt says. Times are ISO 8601 in UTC; `amount` is the text that was sent. */
export type ReceiptClaims = {
  workspaceId: string
  transferId: string
  bizId: string
  amount: string
  currency: string
  sourceWalletId: string
  targetWalletId: string
  completedAt: string
  /** The position of the transfer in the event log. */
  position: number
  reversesTransferId: string | null
  /** The flows of the transfer: their sequence, and their MAC in the ledger. */
  source: { sequence: number; mac: string }
  target: { sequence: number; mac: string }
}

/** The response of `/.well-known/jwks.json` of the service. You can store it: retired keys stay in it. */
export type ReceiptKeys = { keys: readonly { kid: string; x: string }[] }

/** A receipt is not genuine: it was changed, or was not signed with one of the keys. */
export class ReceiptError extends Error {
  override readonly name = 'ReceiptError'
}

/**
 * Verifies a receipt (`transfers.receipt`) without a call to the service. Anybody who has the keys can do that.
 *
 * @param receipt White space around it, such as the newline at the end of a file, is ignored.
 * @throws ReceiptError if it is not genuine
 */
export async function verifyReceipt(receipt: string, { keys }: ReceiptKeys): Promise<ReceiptClaims> {
  const [header = '', payload = '', signature = '', ...rest] = receipt.trim().split('.')
  const { alg, typ, kid } = jsonOf(header)
  if (rest.length > 0 || alg !== 'EdDSA' || typ !== 'wallet-receipt+jwt')
    throw new ReceiptError('The text is not a receipt: a compact JWS of the type wallet-receipt+jwt.')
  const jwk = keys.find(each => each.kid === kid)
  if (!jwk) throw new ReceiptError(`The key ${kid} is unknown. Read /.well-known/jwks.json of the service again.`)
  const { subtle } = globalThis.crypto
  const publicKey = { kty: 'OKP', crv: 'Ed25519', x: jwk.x }
  const key = await subtle.importKey('jwk', publicKey, 'Ed25519', false, ['verify'])
  const signed = new TextEncoder().encode(`${header}.${payload}`)
  if (!(await subtle.verify('Ed25519', key, bytesOf(signature), signed)))
    throw new ReceiptError('The signature is not valid: the receipt was changed, or signed with another key.')
  return jsonOf(payload) as ReceiptClaims
}

function jsonOf(part: string): Record<string, unknown> {
  const bytes = bytesOf(part)
  try {
    const value: unknown = JSON.parse(new TextDecoder('utf-8', { fatal: true }).decode(bytes))
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw new ReceiptError('The text is not a receipt: a part is not a JSON object.')
}

/** Decodes base64url without padding. Each sequence of bytes has one form. */
function bytesOf(part: string): Uint8Array<ArrayBuffer> {
  try {
    const bytes = atob(part.replaceAll('-', '+').replaceAll('_', '/'))
    const form = btoa(bytes).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
    if (form === part) return Uint8Array.from(bytes, character => character.charCodeAt(0))
  } catch {
    // Reported below.
  }
  throw new ReceiptError('The text is not a receipt: a part is not base64url.')
}
