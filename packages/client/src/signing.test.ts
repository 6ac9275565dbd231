/** The vectors of test/vectors, with Web Crypto as in browsers. */
import { afterEach, describe, expect, test, vi } from 'vitest'
import vectors from '../../../test/vectors/signing.json' with { type: 'json' }
import { bodyHash, canonicalMessage, sign, signedHeaders } from './index.ts'

afterEach(() => vi.unstubAllGlobals())

describe.each(vectors)('$name', vector => {
  const { secret, method, target, timestamp, nonce } = vector
  const body = Buffer.from(vector.bodyBase64, 'base64')

  test('body hash, canonical message and signature, each on its own', async () => {
    expect(await bodyHash(body)).toBe(vector.bodyHash)
    const path = target.split('?', 1)[0]!
    expect(canonicalMessage({ method, path, timestamp, nonce, bodyHash: vector.bodyHash })).toBe(
      vector.canonicalMessage,
    )
    expect(await sign(secret, vector.canonicalMessage)).toBe(vector.signature)
  })

  test('the headers of the request', async () => {
    const credentials = { apiKey: 'ak_1', apiSecret: secret }
    expect(await signedHeaders(credentials, { method, target, body, timestamp, nonce })).toEqual({
      'X-Api-Key': 'ak_1',
      'X-Timestamp': timestamp,
      'X-Nonce': nonce,
      'X-Signature': vector.signature,
    })
  })
})

test('each request has a new nonce and the current time', async () => {
  const credentials = { apiKey: 'ak_1', apiSecret: 'secret' }
  const headers = await Promise.all([1, 2, 3].map(() => signedHeaders(credentials, { method: 'GET', target: '/' })))
  expect(new Set(headers.map(each => each['X-Nonce'])).size).toBe(3)
  for (const each of headers) {
    expect(each['X-Nonce']).toMatch(/^[0-9a-f-]{36}$/)
    expect(each['X-Timestamp']).toMatch(/^\d{10}$/)
  }
})

test('a page without Web Crypto gets an error that says what to do', async () => {
  vi.stubGlobal('crypto', { getRandomValues() {} })
  for (const attempt of [bodyHash(''), sign('secret', 'message')])
    await expect(attempt).rejects.toThrow('Open the page over HTTPS.')
  const request = signedHeaders({ apiKey: 'ak_1', apiSecret: 'secret' }, { method: 'GET', target: '/' })
  await expect(request).rejects.toThrow('Open the page over HTTPS.')
})
