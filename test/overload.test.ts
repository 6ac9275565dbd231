import { createServer, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import { type BatchCall, batchCallLimit, packBatch, unpackBatch } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Program } from '../tools/services/program.ts'
import { type Credentials, call, createPath } from './setup/client.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

/** More than can be done: some of it is done, the rest is told at once that it was not, and nothing piles up. */

async function metric(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  const found = new RegExp(`^${name} (\\S+)$`, 'm').exec(text)?.[1]
  expect(found, `${name} is measured`).toBeDefined()
  return Number(found)
}

describe('many times more transfers than core takes', () => {
  const queue = 64
  const rounds = 4
  const flood = 1_000
  let system: System
  let modest: Credentials & { order: object }
  beforeAll(async () => {
    system = await startSystem({ coreEnvironment: { LEDGER_QUEUE: String(queue) } })
    const { admin, baseUrl } = system
    const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Modest' })
    await admin.members.add.mutate({ workspaceId, userId: 'owner' })
    const key = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'owner', scopes: ['transfer:create'] })
    const [sourceWalletId, targetWalletId] = await Promise.all(
      [1, 2].map(async () => {
        const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Modest' })
        await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '100.00' })
        return walletId
      }),
    )
    modest = { ...key, baseUrl, order: { sourceWalletId, targetWalletId, amount: '0.01', currency: 'USD' } }
  })
  afterAll(() => system.stop())

  test('what was accepted is done, the rest is S002, and a modest workspace is served all the while', async () => {
    const [source, target] = system.wallets
    const order = { sourceWalletId: source!.walletId, targetWalletId: target!.walletId, amount: '0.01' }
    const memory = (program: Program) =>
      metric(program === system.cores[0] ? program.url : program.internalUrl, 'process_resident_memory_bytes')
    const programs = [system.cores[0]!, system.gateways[0]!]
    const memories: number[][] = []
    for (let round = 0; round < rounds; round++) {
      let isOver = false
      const flooding = Promise.all(
        Array.from({ length: flood }, (_, at) =>
          call(system, 'POST', createPath, { ...order, currency: 'USD', bizId: `flood-${round}-${at}` }),
        ),
      ).finally(() => (isOver = true))
      let served = 0
      while (!isOver || served < 3) {
        expect((await call(modest, 'POST', createPath, modest.order)).body.code).toBe('2000')
        expect(await metric(system.coreUrl, 'core_postings\\{state="waiting"\\}')).toBeLessThanOrEqual(2 * queue)
        served++
      }
      const answers = await flooding
      const done = answers.filter(({ body }) => body.code === '2000')
      const shed = answers.filter(({ body }) => body.code === 'S002')
      expect(done.length + shed.length).toBe(flood)
      expect(done.length).toBeGreaterThanOrEqual(queue / 2)
      expect(shed.length).toBeGreaterThan(0)
      for (const { headers } of shed) expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
      const { body } = await call(system, 'GET', `/api/v1/transfer/query/orders?bizIdPrefix=flood-${round}-&size=1`)
      expect(body.data.page.totalElements).toBe(done.length)
      memories.push(await Promise.all(programs.map(memory)))
    }
    for (const at of programs.keys()) expect(memories.at(-1)![at]!).toBeLessThan(memories[0]![at]! + 100 * 2 ** 20)
    expect(await metric(system.coreUrl, 'core_postings\\{state="waiting"\\}')).toBe(0)
    expect(await metric(system.gateways[0]!.internalUrl, 'gateway_core_calls\\{state="waiting"\\}')).toBe(0)
    expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
  })
})

describe('calls that wait for a core', () => {
  /** Batches that have arrived and are not answered. */
  const batches: { calls: BatchCall[]; response: ServerResponse }[] = []
  const server = createServer(async (request, response) => {
    if (request.url !== '/batch') return response.end('{}')
    batches.push({ calls: unpackBatch(await buffer(request)) as BatchCall[], response })
  })
  let client: CoreClient
  beforeAll(async () => {
    await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
    client = createCoreClient({ url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, token: 'x' })
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

  test('are bounded in number and in time, and shared out among workspaces', async () => {
    while (client.load().waiting === 0) {
      for (let count = 0; count < batchCallLimit; count++) create('under way')
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    const { inFlight } = client.load()
    await until('as many as can be are under way', () => batches.length === inFlight)
    for (let count = 0; count < 6_000; count++) create('greedy')
    create('modest')
    await until('half of the queue is all that one workspace gets', () => notSent('greedy') > 0)
    expect(notSent('greedy')).toBe(1_000)
    expect(client.load()).toEqual({ waiting: batchCallLimit + 5_001, inFlight, unhealthyCores: 0 })
    const { calls, response } = batches[0]!
    response.end(packBatch(calls.map(() => ({ data: null }))))
    await until('the next has landed', () => batches.length === inFlight + 1)
    expect(batches.at(-1)!.calls.map(({ input }) => (input as { workspaceId: string }).workspaceId)).toContain('modest')
    await until('nobody waits any longer', () => client.load().waiting === 0)
    const landed = batches
      .at(-1)!
      .calls.filter(({ input }) => (input as { workspaceId: string }).workspaceId === 'greedy')
    expect(notSent('greedy')).toBe(6_000 - landed.length)
    expect(notSent('modest')).toBe(0)
  })
})
