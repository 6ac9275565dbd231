import { createSecretKey } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { setImmediate as nextIteration } from 'node:timers/promises'
import { expect, test } from 'vitest'
import type { Key } from './keys/key-cache.ts'
import { MistakeSearch } from './mistake-search.ts'
import { emptyBody } from './raw-body.ts'
import { bodyHash, canonicalMessage, sign } from './signing/index.ts'

const parts = { method: 'GET', path: '/api/v1/wallets', timestamp: '1800000000', nonce: 'n', bodyHash: bodyHash('') }
const ends: Record<string, number> = { new: Number.POSITIVE_INFINITY, ended: 999, old: 2000 }
const secrets = Object.entries(ends).map(([text, validUntilMs]) => ({
  key: createSecretKey(text, 'utf8'),
  validUntilMs,
}))
const key = { secrets } as unknown as Key

function find(signature: string, search = new MistakeSearch(), clientAddress = '192.0.2.1') {
  const headers = { 'x-signature': signature, 'x-api-key': 'ak_1', host: 'localhost' }
  const request = { headers, clientAddress, target: { path: parts.path, query: '' } } as unknown as IncomingMessage
  return search.find(key, request, parts, emptyBody, 1000)
}

test.each([
  ['the new secret', 'new', 'CRLF'],
  ['the old secret within its grace period', 'old', 'CRLF'],
  ['a secret that has ended', 'ended', undefined],
  ['an unknown secret', 'unknown', undefined],
])('the mistake of a client with %s', (_, secret, mistake) => {
  expect(find(sign(secret, canonicalMessage(parts).replaceAll('\n', '\r\n')))).toBe(mistake)
})

test.each(['', 'x', '=', 'ff', 'é'.repeat(44), 'ff'.repeat(20_000), 'A'.repeat(88), `${'A'.repeat(43)}=, b`])(
  'the text %j is no signature',
  text => {
    expect(find(text)).toBeUndefined()
  },
)

const hex = Buffer.from(sign('new', canonicalMessage(parts)), 'base64').toString('hex')

/** Wrong signatures from these addresses, each in an iteration of the event loop. */
async function findFrom(search: MistakeSearch, addresses: (string | undefined)[]): Promise<(string | undefined)[]> {
  const found = []
  for (const address of addresses) {
    found.push(find(hex, search, address))
    await nextIteration()
  }
  return found
}
const all = (count: number, addressOf: (at: number) => string | undefined) =>
  Array.from({ length: count }, (_, at) => addressOf(at))

test('a gateway makes two hundred searches, and then only a few per second', async () => {
  const found = await findFrom(
    new MistakeSearch(),
    all(5000, at => `10.0.${at >> 8}.${at & 255}`),
  )
  expect(found.slice(0, 200)).toEqual(all(200, () => 'SIGNATURE_HEX'))
  expect(found).toContain(undefined)
})

test('a gateway makes one search in an iteration of the event loop', async () => {
  const search = new MistakeSearch()
  for (let count = 0; count < 3; count++) {
    expect([find(hex, search), find(hex, search, '192.0.2.2')]).toEqual(['SIGNATURE_HEX', undefined])
    await nextIteration()
  }
})

test('a client that uses up its searches leaves those of others', async () => {
  const search = new MistakeSearch()
  const found = await findFrom(
    search,
    all(5000, () => undefined),
  )
  expect(found.slice(0, 20)).toEqual(all(20, () => 'SIGNATURE_HEX'))
  expect(found).toContain(undefined)
  expect(await findFrom(search, ['192.0.2.2'])).toEqual(['SIGNATURE_HEX'])
  // The addresses of an IPv6 network are one client.
  expect(
    await findFrom(
      search,
      all(5000, at => `2001:db8::${at.toString(16)}`),
    ),
  ).toContain(undefined)
  expect(await findFrom(search, ['192.0.2.3'])).toEqual(['SIGNATURE_HEX'])
})
