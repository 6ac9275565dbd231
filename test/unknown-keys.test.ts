import { randomBytes } from 'node:crypto'
import { mintId } from '@workspace-wallet/contract'
import { hasKeyIdChecksum, mintKeyId } from '@workspace-wallet/runtime'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { inParallel } from '../cli/processes/in-parallel.ts'
import { call } from './setup/client.ts'
import { type CoreProxy, startCoreProxy } from './setup/core-proxy.ts'
import { readMetric } from './setup/metrics.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey } from './setup/workspaces.ts'

/** Guessed key IDs cost little, use bounded memory, and slow nobody down. */

const list = '/api/v1/wallets'
const keys = { KEY_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}` }

let system: System
let proxy: CoreProxy
/** The key IDs that the gateway has looked up. */
const lookedUp = new Set<string>()
/** How often the gateway has asked for changes. */
let polls = 0
let baseUrl: string
/** The number of keys in the memory of the gateway. */
let gauge: (state: 'known' | 'unknown' | 'waiting') => Promise<number>
beforeAll(async () => {
  system = await startSystem({ gateways: 0, coreEnvironment: keys, gatewayEnvironment: keys })
  proxy = await startCoreProxy(
    { url: system.coreUrl, token: system.gatewayToken },
    {
      onBatch(calls) {
        for (const call of calls) {
          if (call.path === 'access.changes') polls++
          if (call.path === 'access.lookup')
            for (const apiKey of (call.input as { apiKeys: string[] }).apiKeys) lookedUp.add(apiKey)
        }
      },
    },
  )
  const gateway = await system.startGateway({ CORE_URL: proxy.url })
  baseUrl = gateway.url
  gauge = state => readMetric(gateway.internalUrl, `gateway_keys{state="${state}"}`)
})
afterAll(async () => {
  await system.stop()
  proxy.close()
})

test('during a flood of well-formed guesses, core gets no look-up of them, and known and new keys are served', async () => {
  const known = { ...system, baseUrl }
  const issue = () => createKey({ ...system, baseUrl }, { scopes: ['wallet:read'] })
  const before = await issue()
  expect((await call(known, 'GET', list)).status).toBe(200)
  await untilPolled()
  lookedUp.clear()
  let isOver = false
  const flood = guess(2_000).finally(() => (isOver = true))
  let served = 0
  while (!isOver || served < 3) {
    expect((await call(known, 'GET', list)).status).toBe(200)
    // A new key works at its first request, however many guesses are being answered.
    expect((await call(await issue(), 'GET', list)).status).toBe(200)
    served++
  }
  // A key that was issued before the flood, and never used at this gateway.
  expect((await call(before, 'GET', list)).status).toBe(200)
  await flood
  const guesses = [...lookedUp].filter(apiKey => guessed.has(apiKey))
  expect(guesses).toEqual([])
  expect(served).toBeGreaterThanOrEqual(3)
  expect(await gauge('unknown')).toBe(0)
  expect(await gauge('waiting')).toBe(0)
})

test('key IDs contain a checksum: a change of any character is detected', () => {
  const checksumKey = randomBytes(32).toString('base64')
  const minted = Array.from({ length: 200 }, () => mintKeyId(checksumKey))
  expect(new Set(minted).size).toBe(minted.length)
  for (const apiKey of minted) {
    expect(hasKeyIdChecksum(checksumKey, apiKey)).toBe(true)
    expect(hasKeyIdChecksum('another', apiKey)).toBe(false)
    for (let at = 3; at < apiKey.length; at++) {
      const other = apiKey[at] === '0' ? '1' : '0'
      expect(hasKeyIdChecksum(checksumKey, apiKey.slice(0, at) + other + apiKey.slice(at + 1))).toBe(false)
    }
  }
  expect([...minted].sort()).toEqual(minted)
  for (const text of ['', 'ak_', 'x', `${minted[0]}0`, mintId('wallet')])
    expect(hasKeyIdChecksum(checksumKey, text)).toBe(false)
})

const guessed = new Set<string>()

/** Sends requests with well-formed key IDs that were never issued. */
async function guess(count: number): Promise<void> {
  const apiKeys = Array.from({ length: count }, () => mintId('apiKey'))
  for (const apiKey of apiKeys) guessed.add(apiKey)
  await inParallel(16, apiKeys, async apiKey => {
    const { status, body } = await call({ ...system, apiKey, baseUrl }, 'GET', list)
    expect([status, body.code]).toEqual([401, 'GA2011'])
  })
}

/** Waits until the gateway has received all changes so far. */
async function untilPolled(): Promise<void> {
  const before = polls
  await until('two polls', () => polls >= before + 2)
}
