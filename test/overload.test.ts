import { createServer, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { type BatchCall, batchCallLimit, packBatch, unpackBatch } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../tools/services/program.ts'
import { type Credentials, call, createPath } from './setup/client.ts'
import { listen } from './setup/listen.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/** More requests than core can process: some are carried out, the others are rejected at once, and no queue grows. */

describe('many times more transfers than core can queue', () => {
  const queue = 64
  const rounds = 5
  const flood = 1_000
  let system: System
  let modest: Credentials & { order: object }
  beforeAll(async () => {
    system = await startSystem({ coreEnvironment: { LEDGER_QUEUE: String(queue) } })
    const { admin } = system
    const key = await createTenant(system)
    const { workspaceId } = key
    const newWallet = () => createWallet({ admin, workspaceId }, { deposits: ['100.00'] })
    const [sourceWalletId, targetWalletId] = [await newWallet(), await newWallet()]
    modest = { ...key, order: { sourceWalletId, targetWalletId, amount: '0.01', currency: 'USD' } }
  })
  afterAll(() => system.stop())

  test('some are made, the others fail with S002, and another workspace with few transfers is served meanwhile', async () => {
    const memory = (program: Program) =>
      readMetric(program === system.cores[0] ? program.url : program.internalUrl, 'process_resident_memory_bytes')
    const programs = [system.cores[0]!, system.gateways[0]!]
    const memories: number[][] = []
    for (let round = 0; round < rounds; round++) {
      let isOver = false
      const flooding = Promise.all(
        Array.from({ length: flood }, (_, at) =>
          call(system, 'POST', createPath, transferOrder(system, { bizId: `flood-${round}-${at}` })),
        ),
      ).finally(() => (isOver = true))
      let served = 0
      while (!isOver || served < 3) {
        expect((await call(modest, 'POST', createPath, modest.order)).body.code).toBe('2000')
        expect(await readMetric(system.coreUrl, 'core_postings{state="waiting"}')).toBeLessThanOrEqual(2 * queue)
        served++
      }
      const answers = await flooding
      const done = answers.filter(({ body }) => body.code === '2000')
      const rejected = answers.filter(({ body }) => body.code === 'S002')
      expect(done.length + rejected.length).toBe(flood)
      expect(done.length).toBeGreaterThanOrEqual(queue / 2)
      expect(rejected.length).toBeGreaterThan(0)
      for (const { headers } of rejected) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      const { body } = await call(system, 'GET', `/api/v1/transfer/query/orders?bizIdPrefix=flood-${round}-&size=1`)
      expect(body.data.page.totalElements).toBe(done.length)
      memories.push(await Promise.all(programs.map(memory)))
    }
    // Since the second round: in the first one the heaps have not grown to what a flood needs.
    for (const at of programs.keys()) expect(memories.at(-1)![at]!).toBeLessThan(memories[1]![at]! + 100 * 2 ** 20)
    expect(await readMetric(system.coreUrl, 'core_postings{state="waiting"}')).toBe(0)
    expect(await readMetric(system.gateways[0]!.internalUrl, 'gateway_core_calls{state="waiting"}')).toBe(0)
    expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
  })
})

describe('calls that wait for a core', () => {
  /** Batches that have arrived. Only tests answer them. */
  const batches: { calls: BatchCall[]; response: ServerResponse }[] = []
  const server = createServer(async (request, response) => {
    if (request.url !== '/batch') return response.end('{}')
    batches.push({ calls: unpackBatch(await buffer(request)) as BatchCall[], response })
  })
  let client: CoreClient
  beforeAll(async () => {
    client = createCoreClient({ url: `http://127.0.0.1:${await listen(server)}`, token: 'x' })
  })
  afterAll(() => {
    server.close()
    server.closeAllConnections()
  })

  const outcomes = new Map<string, string[]>()
  function create(workspaceId: string): void {
    client.transfers.create.mutate({ workspaceId } as never).catch(error => {
      const { sent } = error.cause as { sent: boolean }
      outcomes.set(workspaceId, [...(outcomes.get(workspaceId) ?? []), sent ? 'unknown' : 'not sent'])
    })
  }
  const notSent = (workspaceId: string) => outcomes.get(workspaceId)?.filter(each => each === 'not sent').length ?? 0

  test('are limited in number and time, and each workspace gets its share of the queue', async () => {
    while (client.load().waiting === 0) {
      for (let count = 0; count < batchCallLimit; count++) create('in flight')
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    const { inFlight } = client.load()
    await until('the maximum number of batches is in flight', () => batches.length === inFlight)
    for (let count = 0; count < 6_000; count++) create('greedy')
    create('modest')
    await until('one workspace has filled its half of the queue', () => notSent('greedy') > 0)
    expect(notSent('greedy')).toBe(1_000)
    expect(client.load()).toEqual({ waiting: batchCallLimit + 5_001, inFlight, unhealthyCores: 0 })
    const { calls, response } = batches[0]!
    response.end(packBatch(calls.map(() => ({ data: null }))))
    await until('the next batch has arrived', () => batches.length === inFlight + 1)
    expect(batches.at(-1)!.calls.map(({ input }) => (input as { workspaceId: string }).workspaceId)).toContain('modest')
    await until('no call waits any longer', () => client.load().waiting === 0)
    const arrived = batches
      .at(-1)!
      .calls.filter(({ input }) => (input as { workspaceId: string }).workspaceId === 'greedy')
    expect(notSent('greedy')).toBe(6_000 - arrived.length)
    expect(notSent('modest')).toBe(0)
  })
})
