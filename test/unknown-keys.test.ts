import { randomBytes } from 'node:crypto'
import { createServer, request as httpRequest, type IncomingMessage } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type BatchCall, batchPath, mintId, unpackBatch } from '@workspace-wallet/contract'
import { hasKeyIdChecksum, mintKeyId } from '@workspace-wallet/runtime'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'

/** Guesses at keys: cheap, bounded, and nobody else's trouble. */

const list = '/api/v1/wallets'
const keys = { KEY_ENCRYPTION_KEYS: `k1:${randomBytes(32).toString('base64')}` }

let system: System
let core: Awaited<ReturnType<typeof openCounter>>
let baseUrl: string
/** What the gateway's metrics say of the keys in its memory. */
let gauge: (state: 'known' | 'unknown' | 'waiting') => Promise<number>
beforeAll(async () => {
  system = await startSystem({ gateways: 0, coreEnvironment: keys, gatewayEnvironment: keys })
  core = await openCounter(system.coreUrl)
  const gateway = await system.startGateway({ CORE_URL: core.url })
  baseUrl = gateway.url
  gauge = async state => {
    const text = await (await fetch(`${gateway.internalUrl}/metrics`)).text()
    return Number(new RegExp(`^gateway_keys\\{state="${state}"\\} (\\d+)$`, 'm').exec(text)![1])
  }
})
afterAll(async () => {
  await system.stop()
  await core.close()
})

test('a flood of well-formed guesses: core hears of none, and keys that are known or new are served', async () => {
  const known = { ...system, baseUrl }
  const issue = async () => {
    const { workspaceId, admin } = system
    return {
      baseUrl,
      ...(await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'owner', scopes: ['wallet:read'] })),
    }
  }
  const before = await issue()
  expect((await call(known, 'GET', list)).status).toBe(200)
  await untilPolled()
  core.asked.clear()
  let isOver = false
  const flood = guess(6_000).finally(() => (isOver = true))
  let served = 0
  while (!isOver || served < 3) {
    expect((await call(known, 'GET', list)).status).toBe(200)
    // At its first request, however many guesses stand in line.
    expect((await call(await issue(), 'GET', list)).status).toBe(200)
    served++
  }
  // Issued long ago, and never used at this gateway.
  expect((await call(before, 'GET', list)).status).toBe(200)
  await flood
  const guesses = [...core.asked].filter(apiKey => guessed.has(apiKey))
  expect(guesses).toEqual([])
  expect(served).toBeGreaterThanOrEqual(3)
  expect(await gauge('unknown')).toBe(0)
  expect(await gauge('waiting')).toBe(0)
})

test('ids of keys contain a checksum: a change of any character breaks it', () => {
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

/** Sends so many requests, each under another well-formed id that was never issued. */
async function guess(count: number): Promise<void> {
  let left = count
  const sender = async () => {
    while (left-- > 0) {
      const apiKey = mintId('apiKey')
      guessed.add(apiKey)
      const { status, body } = await call({ ...system, apiKey, baseUrl }, 'GET', list)
      expect([status, body.code]).toEqual([401, 'GA2011'])
    }
  }
  await Promise.all(Array.from({ length: 16 }, sender))
}

/** Until the gateway has heard of every key that was issued so far. */
async function untilPolled(): Promise<void> {
  const polls = core.polls()
  while (core.polls() < polls + 2) await new Promise(setImmediate)
}

/** Stands between a gateway and core, and notes which keys the gateway asks about. */
async function openCounter(target: string) {
  const asked = new Set<string>()
  let polls = 0
  const server = createServer(async (incoming: IncomingMessage, outgoing) => {
    const chunks: Buffer[] = []
    for await (const chunk of incoming) chunks.push(chunk as Buffer)
    const body = Buffer.concat(chunks)
    if (incoming.url === batchPath)
      for (const { path, input } of unpackBatch(body) as BatchCall[]) {
        if (path === 'access.changes') polls++
        if (path === 'access.lookup') for (const apiKey of (input as { apiKeys: string[] }).apiKeys) asked.add(apiKey)
      }
    const { method, headers } = incoming
    const onward = httpRequest(target + incoming.url, { method, headers }, answer => {
      outgoing.writeHead(answer.statusCode!, answer.headers)
      answer.pipe(outgoing)
    })
    onward.on('error', () => outgoing.destroy())
    onward.end(body)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    asked,
    polls: () => polls,
    async close() {
      server.closeAllConnections()
      server.close()
    },
  }
}
