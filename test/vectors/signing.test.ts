/**
 * The signature of section 5.2, step by step, against vectors that make.sh computes with openssl and sha256sum. The step
 * that fails shows where the mistake is. Clients in other languages can use the same file.
 */
import { execFile } from 'node:child_process'
import { createSecretKey } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { bodyHash, canonicalMessage, sign } from '@workspace-wallet/gateway/signing'
import { describe, expect, test } from 'vitest'

interface Vector {
  name: string
  secret: string
  method: string
  /** As sent, with the query string. */
  target: string
  timestamp: string
  nonce: string
  bodyBase64: string
  bodyHash: string
  canonicalMessage: string
  signature: string
  /** A common mistake of clients, and its result. */
  trap?: { mistake: string; canonicalMessage: string; signature: string }
}

const here = (name: string) => fileURLToPath(new URL(name, import.meta.url))
const file = await readFile(here('signing.json'), 'utf8')
const vectors = JSON.parse(file) as Vector[]
const withTrap = vectors.flatMap(vector => (vector.trap ? [{ ...vector, trap: vector.trap }] : []))

function messageOf({ method, target, timestamp, nonce, bodyHash: hash }: Vector): string {
  return canonicalMessage({ method, path: target.split('?', 1)[0]!, timestamp, nonce, bodyHash: hash })
}

describe.each(vectors)('$name', vector => {
  test('body hash', () => {
    expect(bodyHash(Buffer.from(vector.bodyBase64, 'base64'))).toBe(vector.bodyHash)
  })

  test('canonical message', () => {
    expect(messageOf(vector)).toBe(vector.canonicalMessage)
  })

  test('signature', () => {
    expect(sign(vector.secret, vector.canonicalMessage)).toBe(vector.signature)
    expect(sign(createSecretKey(Buffer.from(vector.secret)), vector.canonicalMessage)).toBe(vector.signature)
  })
})

describe('a common mistake gives a wrong signature', () => {
  test.each(withTrap)('$trap.mistake', vector => {
    expect(vector.trap.signature).not.toBe(vector.signature)
    expect(sign(vector.secret, messageOf(vector))).not.toBe(vector.trap.signature)
  })

  // The named mistake is the only difference.
  test.each(withTrap.filter(({ trap, canonicalMessage: right }) => trap.canonicalMessage !== right))(
    'only the mistake causes it: $trap.mistake',
    ({ secret, trap }) => {
      expect(sign(secret, trap.canonicalMessage)).toBe(trap.signature)
    },
  )
})

test('a string and its UTF-8 bytes have the same body hash', () => {
  for (const { bodyBase64 } of vectors) {
    const bytes = Buffer.from(bodyBase64, 'base64')
    const text = bytes.toString('utf8')
    if (Buffer.from(text).equals(bytes)) expect(bodyHash(text)).toBe(bodyHash(bytes))
  }
})

test('the vectors have unique names and cover section 5.2', () => {
  expect(vectors.length).toBeGreaterThanOrEqual(15)
  expect(new Set(vectors.map(({ name }) => name)).size).toBe(vectors.length)
  expect(withTrap.map(({ trap }) => trap.mistake)).toEqual(
    expect.arrayContaining([
      'signs the query string as well',
      'ends the message with a newline',
      'writes the body hash in upper case',
      'hashes the body after serializing it again',
    ]),
  )
  expect(vectors.some(({ signature }) => signature.includes('+') && signature.includes('/'))).toBe(true)
})

test('make.sh prints exactly these vectors', async () => {
  const made = await runMake(process.env.PATH)
  expect(made.stderr).toBe('')
  expect(made.stdout).toBe(file)
})

test('make.sh reports a missing openssl in one sentence', async () => {
  const { stdout, stderr } = await runMake('/nonexistent')
  expect(stdout).toBe('')
  expect(stderr).toMatch(/^[^\n]*openssl is missing: install [^\n]*\.\n$/)
})

async function runMake(path: string | undefined): Promise<{ stdout: string; stderr: string }> {
  try {
    return await promisify(execFile)('/bin/sh', [here('make.sh')], { env: { PATH: path } })
  } catch (error) {
    const { stdout, stderr } = error as { stdout: string; stderr: string }
    return { stdout, stderr }
  }
}
