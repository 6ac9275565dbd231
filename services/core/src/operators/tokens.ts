import { createHmac, hash, randomBytes, timingSafeEqual } from 'node:crypto'

/**
 * Tokens of operators: `opr_`, 32 random bytes and a checksum under a key of core. Core thereby rejects what cannot be a token
 * without asking the database: anybody on its network can send one.
 */
const prefix = 'opr_'
const randomLength = 32
const checksumLength = 9

export function mintOperatorToken(checksumKey: string): string {
  const random = randomBytes(randomLength)
  return prefix + Buffer.concat([random, checksumOf(checksumKey, random)]).toString('base64url')
}

/** Whether core can have issued a token. */
export function hasOperatorChecksum(checksumKey: string, token: string): boolean {
  if (!token.startsWith(prefix)) return false
  const bytes = Buffer.from(token.slice(prefix.length), 'base64url')
  if (bytes.length !== randomLength + checksumLength) return false
  return timingSafeEqual(checksumOf(checksumKey, bytes.subarray(0, randomLength)), bytes.subarray(randomLength))
}

/** What is stored of a token. */
export function hashOfToken(token: string): Buffer {
  return hash('sha256', token, 'buffer')
}

function checksumOf(key: string, random: Buffer): Buffer {
  return createHmac('sha256', key).update(random).digest().subarray(0, checksumLength)
}
