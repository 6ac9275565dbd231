/**
 * Verifies a receipt in a browser, in Node, or wherever there is Web Crypto with Ed25519.
 *
 * @param {string} receipt
 * @param {{ keys: { kid: string, x: string }[] }} jwks the response of /.well-known/jwks.json
 * @returns {Promise<object>} what the receipt says
 * @throws {Error} if it is not genuine
 */
export async function verifyReceipt(receipt, jwks) {
  const parts = receipt.trim().split('.')
  if (parts.length !== 3) throw new Error('it does not have three parts')
  const [header, payload, signature] = parts
  const { alg, typ, kid } = decodeJson(header)
  if (alg !== 'EdDSA' || typ !== 'wallet-receipt+jwt') throw new Error('it is not a receipt')
  const jwk = jwks.keys.find(each => each.kid === kid)
  if (!jwk) throw new Error('its key is unknown')
  const { kty, crv, x } = jwk
  const key = await crypto.subtle.importKey('jwk', { kty, crv, x }, 'Ed25519', false, ['verify'])
  const signed = new TextEncoder().encode(`${header}.${payload}`)
  if (!(await crypto.subtle.verify('Ed25519', key, decode(signature), signed)))
    throw new Error('its signature is wrong')
  return decodeJson(payload)
}

function decodeJson(text) {
  return JSON.parse(new TextDecoder().decode(decode(text)))
}

/** Decodes base64url without padding, in its only form. */
function decode(text) {
  if (!/^[A-Za-z0-9_-]*$/.test(text)) throw new Error('a part is not base64url')
  const binary = atob(text.replaceAll('-', '+').replaceAll('_', '/'))
  // Bits after the last byte may have any value: atob ignores them.
  const form = btoa(binary).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '')
  if (form !== text) throw new Error('a part is not base64url')
  return Uint8Array.from(binary, character => character.charCodeAt(0))
}
