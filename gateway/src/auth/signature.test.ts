import { createSecretKey, type KeyObject } from 'node:crypto'
import type { IncomingMessage } from 'node:http'
import { join } from 'node:path'
import { createLog } from '@workspace-wallet/runtime'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { makeTempDir } from '../../../test/setup/temp.ts'
import { until } from '../../../test/setup/until.ts'
import type { Key } from './keys/key-cache.ts'
import { MistakeSearch } from './mistake-search.ts'
import { openFileNonces } from './nonces/file-store.ts'
import type { NonceStore } from './nonces/store.ts'
import { emptyBody } from './raw-body.ts'
import { checkNonceAndSignature } from './signature.ts'
import { canonicalMessage, sign } from './signing/index.ts'

let nonces: NonceStore
beforeAll(async () => {
  nonces = await openFileNonces(
    join(await makeTempDir('signature'), 'nonces'),
    {
      readKey: async () => 'any',
      begin: async (_, partitions) => ({ first: [...partitions], latest: [...partitions] }),
      latest: async () => ({}),
    },
    {},
    createLog('gateway', 'silent').log,
  )
  await until('the nonce file can be used', async () => (await nonces.fault()) === null)
})
afterAll(() => nonces.close())

/** A secret that records when it is used. */
function secret(name: string, validUntilMs: number, used: string[]): Key['secrets'][number] {
  return {
    get key(): KeyObject {
      used.push(name)
      return createSecretKey(name, 'utf8')
    },
    validUntilMs,
  }
}

// If a match skipped the remaining secrets, the response time would show which secret a client has.
test.each([
  ['new', 'passes'],
  ['old', 'passes'],
  ['ended', 'GA2012'],
  ['wrong', 'GA2012'],
])('a signature with the %s secret: %s; the signature of every secret was computed', async (name, expected) => {
  const used: string[] = []
  const secrets = [
    secret('new', Number.POSITIVE_INFINITY, used),
    secret('old', 1_000, used),
    secret('ended', 999, used),
  ]
  const key = { apiKey: 'ak_1', secrets } as unknown as Key
  const parts = {
    method: 'GET',
    path: '/api/v1/wallets',
    timestamp: String(Math.floor(Date.now() / 1000)),
    nonce: `n-${name}`,
    bodyHash: '',
  }
  const headers = { 'x-signature': sign(name, canonicalMessage(parts)) }
  const request = { headers } as unknown as IncomingMessage
  const stores = { nonces, mistakes: new MistakeSearch() }
  const outcome = await checkNonceAndSignature(stores, key, request, { parts, body: emptyBody }, 999).then(
    () => 'passes',
    error => error.code,
  )
  expect(outcome).toBe(expected)
  expect(used).toEqual(['new', 'old', 'ended'])
})
