import { createSecretKey, randomBytes } from 'node:crypto'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { mintId, uuidFromId } from '@workspace-wallet/contract'
import pg from 'pg'
import { expect, test } from 'vitest'
import { KnownWebhooks } from './known-webhooks.ts'

test('a client that creates webhooks, lets them be leased and deletes them does not fill the memory of core', () => {
  setFlagsFromString('--expose-gc')
  const collectGarbage = runInNewContext('gc') as () => void
  const known = new KnownWebhooks(new pg.Pool(), createSecretKey(randomBytes(32)))
  const heapAfter = (count: number) => {
    for (let at = 0; at < count; at++) known.remember(uuidFromId('webhook', mintId('webhook')))
    collectGarbage()
    return process.memoryUsage().heapUsed
  }
  const full = heapAfter(250_000)
  // Each would add 150 MB.
  expect(heapAfter(400_000) - full).toBeLessThan(50e6)
})
