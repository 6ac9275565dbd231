import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { ReceiptKeys } from '@workspace-wallet/contract'

/** The Ed25519 key pairs of receipts, by ID. The first one signs, all of them verify. */
export type SigningKeys = ReadonlyMap<string, { privateKey: KeyObject; publicKey: KeyObject }>

/** The bytes of PKCS #8 before the 32 bytes of an Ed25519 seed (RFC 8410). */
const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * Parses `id:base64,id2:base64`, each with a seed of 32 bytes.
 *
 * @throws Error with a message for operators
 */
export function parseSigningKeys(text: string): SigningKeys {
  const keys = new Map<string, { privateKey: KeyObject; publicKey: KeyObject }>()
  for (const entry of text.split(',')) {
    const [id = '', encoded = '', ...rest] = entry.trim().split(':')
    const seed = Buffer.from(encoded, 'base64')
    if (rest.length > 0 || !/^[A-Za-z0-9_-]{1,32}$/.test(id) || seed.length !== 32)
      throw new Error('needs entries of the form id:base64, each of 32 random bytes, separated by commas')
    if (keys.has(id)) throw new Error(`names the key id ${id} twice`)
    const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8Head, seed]), format: 'der', type: 'pkcs8' })
    keys.set(id, { privateKey, publicKey: createPublicKey(privateKey) })
  }
  return keys
}

/** The public keys, as JWKs (RFC 8037). */
export function publicKeysOf(keys: SigningKeys): ReceiptKeys {
  return {
    keys: [...keys].map(([kid, { publicKey }]) => {
      const { x } = publicKey.export({ format: 'jwk' }) as { x: string }
      return { kty: 'OKP', crv: 'Ed25519', x, kid, use: 'sig', alg: 'EdDSA' }
    }),
  }
}
