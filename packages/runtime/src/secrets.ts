import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'

/**
 * API secrets at rest: AES-256-GCM under a key-encryption key (KEK) that the database never sees, written as
 * `v1.kek-id.iv.tag.ciphertext` (base64url). The additional data binds a ciphertext to its key, workspace and
 * version, so that a row copied over another one does not decrypt.
 */
export type KeyRing = { activeId: string; keys: ReadonlyMap<string, KeyObject> }
export type SecretOwner = { apiKey: string; workspaceId: string; version: number }

/** Reads `id:base64,id2:base64`; the first one encrypts, all of them decrypt. Throws a sentence for people. */
export function parseKeyRing(text: string): KeyRing {
  const keys = new Map<string, KeyObject>()
  for (const entry of text.split(',')) {
    const [id = '', encoded = '', ...rest] = entry.trim().split(':')
    const bytes = Buffer.from(encoded, 'base64')
    if (rest.length > 0 || !/^[A-Za-z0-9_-]{1,32}$/.test(id) || bytes.length !== 32)
      throw new Error('needs entries of the form id:base64, each of 32 random bytes, separated by commas')
    if (keys.has(id)) throw new Error(`names the key id ${id} twice`)
    keys.set(id, createSecretKey(bytes))
  }
  return { activeId: keys.keys().next().value!, keys }
}

/** Encrypts a secret under the active key. */
export function encryptSecret(ring: KeyRing, owner: SecretOwner, secret: string): string {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', ring.keys.get(ring.activeId)!, iv)
  cipher.setAAD(additionalData(owner))
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return ['v1', ring.activeId, ...[iv, cipher.getAuthTag(), ciphertext].map(part => part.toString('base64url'))].join(
    '.',
  )
}

/** Decrypts a encrypted secret; throws when it was altered, moved, or encrypted under a key that is not on the ring. */
export function decryptSecret(ring: KeyRing, owner: SecretOwner, encrypted: string): string {
  const [format, kekId = '', iv = '', tag = '', ciphertext = ''] = encrypted.split('.')
  const key = ring.keys.get(kekId)
  if (format !== 'v1' || !key) throw new Error(`no key-encryption key "${kekId}" for a encrypted secret`)
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url'), { authTagLength: 16 })
  decipher.setAAD(additionalData(owner))
  decipher.setAuthTag(Buffer.from(tag, 'base64url'))
  return Buffer.concat([decipher.update(Buffer.from(ciphertext, 'base64url')), decipher.final()]).toString('utf8')
}

/** The id of the key-encryption key that a encrypted secret names. */
export function kekOf(encrypted: string): string {
  return encrypted.split('.')[1] ?? ''
}

function additionalData({ apiKey, workspaceId, version }: SecretOwner): Buffer {
  return Buffer.from(`${apiKey}|${workspaceId}|${version}`)
}
