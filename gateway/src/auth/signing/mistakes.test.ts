import { createHmac } from 'node:crypto'
import { expect, test } from 'vitest'
import { bodyHash, canonicalMessage, sign } from './index.ts'
import { type Candidate, candidatesOf, type ReceivedRequest } from './mistakes.ts'

const secret = 'Qm9-0_cDSYzXMqPkTQ2Tj1rV5kTfXo0wO8sQbZ1yNzE'
const body = '{"b":"x","a":1}'
const request: ReceivedRequest = {
  apiKey: 'ak_1',
  method: 'POST',
  path: '/api/v1/a%2Fb',
  query: 'page=1',
  host: 'localhost:8080',
  timestamp: '1800000000',
  nonce: 'N-1',
  body,
  bodyHash: bodyHash(body),
}

function hmacOf({ message, hashedBody, key = secret }: Candidate): string {
  const data = hashedBody === undefined ? message : message + bodyHash(hashedBody)
  return createHmac('sha256', key).update(data).digest('base64')
}

test('no candidate is correct, and no two are the same', () => {
  for (const each of [request, { ...request, query: '', body: '', bodyHash: bodyHash(''), method: 'GET' }]) {
    const signatures = candidatesOf(each, secret).map(hmacOf)
    expect(signatures.length).toBeGreaterThan(40)
    expect(signatures).not.toContain(sign(secret, canonicalMessage(each)))
    expect(new Set(signatures).size).toBe(signatures.length)
  }
})

// A decoder that skips or stops at a character that does not fit would make a key of a part of the secret, which an attacker
// could guess: "ab" of "ab-…" in two hundred requests.
test.each([secret, 'ab-not-hex!', 'a', 'abc*', 'ffzz', 'ff ff', '====', ''])(
  'every key that is made from the secret %j has all of it, or nothing',
  tried => {
    for (const { key, message, mistake } of candidatesOf(request, tried)) {
      if (key === undefined || key === request.apiKey) continue
      if (mistake === 'SECRET_AND_MESSAGE_SWAPPED') expect(message).toBe(tried)
      else if (typeof key === 'string')
        expect(key.includes(tried) || key === Buffer.from(tried).toString('base64')).toBe(true)
      else
        expect([Buffer.from(key).toString('base64url'), Buffer.from(key).toString('hex')]).toContain(
          tried.replaceAll('=', ''),
        )
    }
  },
)

test.each([
  ['a body of arrays in arrays', '['.repeat(4000) + ']'.repeat(4000)],
  ['a body that is no JSON', '{"a":'],
  ['a body of brackets', '['.repeat(8192)],
  ['a body of quotes', '"'.repeat(8191)],
  ['a body of backslashes', `"${'\\\\'.repeat(4000)}"`],
  ['a body of numbers', `[[[[${'1,'.repeat(4000)}1]]]]`],
  ['a body of letters to escape', JSON.stringify('é<'.repeat(2700))],
  ['a body with a key __proto__', '{"__proto__":{"a":1},"b":2}'],
  ['a lone surrogate', '"\ud800"'],
])('%s is hashed at most a hundred times its length', (_, text) => {
  const candidates = candidatesOf({ ...request, body: text, bodyHash: bodyHash(text) }, secret)
  expect(candidates.length).toBeLessThan(100)
  const hashed = candidates.map(({ message, hashedBody = '' }) => message.length + hashedBody.length)
  expect(hashed.reduce((sum, length) => sum + length, 0)).toBeLessThan(100 * Math.max(8192, text.length))
})

test('a request with a long target is not searched', () => {
  expect(candidatesOf({ ...request, query: 'x'.repeat(2000) }, secret)).toEqual([])
})

test('a path that is not valid percent-encoding has candidates too', () => {
  expect(candidatesOf({ ...request, path: '/api/v1/%zz%' }, secret).length).toBeGreaterThan(40)
})
