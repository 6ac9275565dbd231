import { expect, test } from 'vitest'
import { decryptSecret, encryptSecret, kekOf, parseKeyRing } from './secrets.ts'

const encode = (byte: number, length = 32) => Buffer.alloc(length, byte).toString('base64')
const oldRing = parseKeyRing(`old:${encode(1)}`)
const ring = parseKeyRing(`new:${encode(2)}, old:${encode(1)}`)
const owner = { id: 'ak_1', workspaceId: 'wsp_1', version: 1 }
const encrypted = encryptSecret(oldRing, owner, 'secret')

test('the first key encrypts, and every key decrypts', () => {
  expect(kekOf(encrypted)).toBe('old')
  expect(decryptSecret(ring, owner, encrypted)).toBe('secret')
  expect(kekOf(encryptSecret(ring, owner, 'secret'))).toBe('new')
  expect(encryptSecret(oldRing, owner, 'secret')).not.toBe(encrypted)
})

test.each([
  ['another key or webhook', { ...owner, id: 'ak_2' }],
  ['another workspace', { ...owner, workspaceId: 'wsp_2' }],
  ['another version', { ...owner, version: 2 }],
])('a secret that is moved to %s does not decrypt', (_, other) => {
  expect(() => decryptSecret(ring, other, encrypted)).toThrow()
})

test.each(encrypted.split('.').map((_, part) => part))('a secret whose part %d is changed does not decrypt', part => {
  const parts = encrypted.split('.')
  parts[part] = parts[part]!.replace(/^./, first => (first === 'A' ? 'B' : 'A'))
  expect(() => decryptSecret(ring, owner, parts.join('.'))).toThrow()
})

test('a secret with a shortened authentication tag, or without its key, does not decrypt', () => {
  const parts = encrypted.split('.')
  parts[3] = Buffer.from(parts[3]!, 'base64url').subarray(0, 4).toString('base64url')
  expect(() => decryptSecret(ring, owner, parts.join('.'))).toThrow()
  expect(() => decryptSecret(parseKeyRing(`new:${encode(2)}`), owner, encrypted)).toThrow('no key-encryption key "old"')
})

test.each([
  ['', 'needs entries'],
  ['old', 'needs entries'],
  [`:${encode(1)}`, 'needs entries'],
  [`a b:${encode(1)}`, 'needs entries'],
  [`old:${encode(1, 31)}`, 'needs entries'],
  [`old:${encode(1, 33)}`, 'needs entries'],
  [`old:${encode(1)}:x`, 'needs entries'],
  [`old:${encode(1)},`, 'needs entries'],
  [`old:${encode(1)},old:${encode(2)}`, 'names the key id old twice'],
])('the key ring "%s" is rejected: %s', (text, message) => {
  expect(() => parseKeyRing(text)).toThrow(message)
})
