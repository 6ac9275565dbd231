import { createPrivateKey, createPublicKey, type KeyObject } from 'node:crypto'
import type { ReceiptKeys } from '@workspace-wallet/contract'
import { parseKeyList } from '@workspace-wallet/runtime'

type KeyPair = { privateKey: KeyObject; publicKey: KeyObject }
/** The Ed25519 key pairs of receipts, by ID. The first one signs, all of them verify. */
export type SigningKeys = ReadonlyMap<string, KeyPair>

/** The bytes of PKCS #8 before the 32 bytes of an Ed25519 seed (RFC 8410). */
const pkcs8Head = Buffer.from('302e020100300506032b657004220420', 'hex')

/**
 * Parses `id:base64,id2:base64`, each with a seed of 32 bytes.
 *
 * @throws Error with a message for operators
 */
export function parseSigningKeys(text: string): SigningKeys {
  return parseKeyList(text, keyPairOf)
}

function keyPairOf(seed: Buffer): KeyPair {
  const privateKey = createPrivateKey({ key: Buffer.concat([pkcs8Head, seed]), format: 'der', type: 'pkcs8' })
  return { privateKey, publicKey: createPublicKey(privateKey) }
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
