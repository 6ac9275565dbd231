import { randomUUID } from 'node:crypto'
import {
  type BatchCall,
  batchCallLimit,
  batchPath,
  batchType,
  packBatch,
  unpackBatch,
} from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'

/** Whoever has a service token cannot keep core from serving the public API, with however many calls. */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

const caller = { requestId: 'flood' }
const connections = 8

/** Sends full batches of a call on some connections until the API has been served, and returns the codes of the answers. */
async function flood(token: string, makeCall: () => BatchCall, served: Promise<unknown>): Promise<Set<string>> {
  const codes = new Set<string>()
  let isOver = false
  const over = served.finally(() => {
    isOver = true
  })
  const sendBatches = async () => {
    do {
      const body = packBatch(Array.from({ length: batchCallLimit }, makeCall))
      const headers = { authorization: `Bearer ${token}`, 'content-type': batchType }
      const response = await fetch(`${system.coreUrl}${batchPath}`, {
        method: 'POST',
        headers,
        body: new Uint8Array(body),
      })
      expect(response.status).toBe(200)
      for (const answer of unpackBatch(Buffer.from(await response.arrayBuffer())) as Record<string, never>[])
        codes.add('error' in answer ? ((answer.error as { message: string }).message ?? '') : 'ok')
    } while (!isOver)
  }
  await Promise.all([over, ...Array.from({ length: connections }, sendBatches)])
  return codes
}

/** Calls of a client of the public API, one after the other. */
async function useApi(): Promise<number[]> {
  const [source, target] = system.wallets
  const statuses: number[] = []
  for (let count = 0; count < 10; count++) {
    const read = await call(system, 'GET', `/api/v1/wallets/${source!.walletId}/balance`)
    const order = { bizId: randomUUID(), amount: '0.01', currency: 'USD' }
    const body = { ...order, sourceWalletId: source!.walletId, targetWalletId: target!.walletId }
    const made = await call(system, 'POST', createPath, body)
    statuses.push(read.status, made.status)
  }
  return statuses
}

const floods: [string, () => string, () => BatchCall][] = [
  [
    'lists of webhooks, with the token of a service',
    () => system.serviceToken,
    () => ({
      path: 'webhooks.list',
      type: 'query',
      input: { workspaceId: system.workspaceId, caller, page: 0, size: 10, sort: [] },
    }),
  ],
  [
    'deposits, with the token of the funding service',
    () => system.fundingToken,
    () => ({
      path: 'wallets.deposit',
      type: 'mutation',
      input: { workspaceId: system.workspaceId, walletId: system.wallets[0]!.walletId, amount: '1.00', bizId: 'again' },
    }),
  ],
  [
    'questions for the generations of nonces, with the token of a gateway',
    () => system.gatewayToken,
    () => ({ path: 'access.latestNonceGenerations', type: 'query', input: undefined }),
  ],
  [
    'leases, with the token of a courier',
    () => system.courierToken,
    () => ({ path: 'courier.lease', type: 'mutation', input: { size: 10, held: [] } }),
  ],
]

test.each(floods)('a flood of %s does not stop the API', async (_, token, makeCall) => {
  const served = useApi()
  await flood(token(), makeCall, served)
  expect(await served).toEqual(Array.from({ length: 20 }, () => 200))
})
