import { createCipheriv, createDecipheriv, createSecretKey, type KeyObject, randomBytes } from 'node:crypto'

/**
 * The key-encryption keys (KEKs). They encrypt the secrets of API keys and webhooks at rest with AES-256-GCM and are never
 * stored in the database. An encrypted secret has the form `v1.kek-id.iv.tag.ciphertext` (base64url). The additional data
 * binds it to its API key or webhook, workspace and version, so that a ciphertext copied to another row does not decrypt.
 */
export type KeyRing = { activeId: string; keys: ReadonlyMap<string, KeyObject> }
/** `id`: of the API key or the webhook. */
export type SecretOwner = { id: string; workspaceId: string; version: number }

/**
 * Parses `id:base64,id2:base64`. The first KEK encrypts, all of them decrypt.
 *
 * @throws Error with a message for operators
 */
export function parseKeyRing(text: string): KeyRing {
  const keys = parseKeyList(text, createSecretKey)
  return { activeId: keys.keys().next().value!, keys }
}

/**
 * Parses `id:base64,id2:base64` into keys by their IDs, in the order of the list.
 *
 * @param toKey makes a key of its 32 bytes
 * @throws Error with a message for operators
 */
export function parseKeyList<Key>(text: string, toKey: (bytes: Buffer) => Key): Map<string, Key> {
  const keys = new Map<string, Key>()
  for (const entry of text.split(',')) {
    const [id = '', encoded = '', ...rest] = entry.trim().split(':')
    const bytes = Buffer.from(encoded, 'base64')
    if (rest.length > 0 || !/^[A-Za-z0-9_-]{1,32}$/.test(id) || bytes.length !== 32)
      throw new Error('needs entries of the form id:base64, each of 32 random bytes, separated by commas')
    if (keys.has(id)) throw new Error(`names the key id ${id} twice`)
    keys.set(id, toKey(bytes))
  }
  return keys
}

/** Encrypts a secret with the active KEK. */
export function encryptSecret(ring: KeyRing, owner: SecretOwner, secret: string): string {
  const iv = randomBytes(12)
  const cipher = createCipheriv('aes-256-gcm', ring.keys.get(ring.activeId)!, iv)
  cipher.setAAD(additionalData(owner))
  const ciphertext = Buffer.concat([cipher.update(secret, 'utf8'), cipher.final()])
  return ['v1', ring.activeId, ...[iv, cipher.getAuthTag(), ciphertext].map(part => part.toString('base64url'))].join(
    '.',
  )
}

/**
 * Decrypts a secret.
 *
 * @throws Error if it was modified or moved, or if its KEK is not on the key ring
 */
export function decryptSecret(ring: KeyRing, owner: SecretOwner, encrypted: string): string {
  const [format, kekId = '', iv = '', tag = '', ciphertext = ''] = encrypted.split('.')
  const key = ring.keys.get(kekId)
  if (format !== 'v1' || !key) throw new Error(`the key ring has no key-encryption key "${kekId}"`)
  const decipher = createDecipheriv('aes-256-gcm', key, Buffer.from(iv, 'base64url'), { authTagLength: 16 })
  decipher.setAAD(additionalData(owner))
  decipher.setAuthTag(Buffer.from(tag, 'base64url'))
  return Buffer.concat([decipher.update(Buffer.from(ciphertext, 'base64url')), decipher.final()]).toString('utf8')
}

/** The ID of the KEK of an encrypted secret. */
export function kekOf(encrypted: string): string {
  return encrypted.split('.')[1] ?? ''
}

function additionalData({ id, workspaceId, version }: SecretOwner): Buffer {
  return Buffer.from(`${id}|${workspaceId}|${version}`)
}
