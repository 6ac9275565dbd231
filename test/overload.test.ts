import { createServer } from 'node:http'
import { batchCallLimit } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from 'vitest'
import { openHeap } from '../tools/bench/measure/heap.ts'
import { type ReceivedBatch, serveBatches } from './setup/batches.ts'
import { batchPath, type Credentials, call, createPath, signedHeaders } from './setup/client.ts'
import { listen } from './setup/listen.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { openConnection, received, requestText } from './setup/raw-http.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/** More requests than core can process: some are carried out, the others are rejected at once, and no queue grows. */

describe('a flood of one workspace', () => {
  const queue = 64
  const rounds = 5
  const flood = 1_000
  /** In bytes: less than a kilobyte and a half for each request after the first rounds. */
  const allowance = 4 * 2 ** 20
  let system: System
  let modest: Credentials & { order: object }
  beforeAll(async () => {
    const inspected = { NODE_OPTIONS: '--inspect=127.0.0.1:0' }
    system = await startSystem({
      coreEnvironment: { ...inspected, LEDGER_QUEUE: String(queue) },
      gatewayEnvironment: inspected,
    })
    const { admin } = system
    const key = await createTenant(system)
    const { workspaceId } = key
    const newWallet = () => createWallet({ admin, workspaceId }, { deposits: ['100.00'] })
    const [sourceWalletId, targetWalletId] = [await newWallet(), await newWallet()]
    modest = { ...key, order: { sourceWalletId, targetWalletId, amount: '0.01', currency: 'USD' } }
  })
  afterAll(() => system.stop())

  /** The sizes of the heaps of core and gateway after a collection of garbage, in bytes. */
  async function measureHeaps(): Promise<number[]> {
    const heaps = await Promise.all([system.cores[0]!, system.gateways[0]!].map(openHeap))
    try {
      return await Promise.all(heaps.map(heap => heap.measure()))
    } finally {
      // Otherwise the programs wait for the inspector before they exit.
      for (const heap of heaps) heap.close()
    }
  }

  test('with many times more transfers than core can queue: some are made, the others fail with S002, and another workspace is served meanwhile', async () => {
    const heaps: number[][] = []
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
      heaps.push(await measureHeaps())
    }
    // Since the second round: in the first one the heaps have not grown to what a flood needs.
    await until('the memory is free again', async () =>
      (await measureHeaps()).every((size, at) => size < heaps[1]![at]! + allowance),
    )
    expect(await readMetric(system.coreUrl, 'core_postings{state="waiting"}')).toBe(0)
    expect(await readMetric(system.gateways[0]!.internalUrl, 'gateway_core_calls{state="waiting"}')).toBe(0)
    expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
  })

  test('with large batches that arrive at once: they are validated one at a time, and another workspace is served meanwhile', async () => {
    const texts = { reference: 'r'.repeat(64), remark: '\u00e9'.repeat(256) }
    // The last item is invalid, so that nothing is posted.
    const transfers = Array.from({ length: 100 }, (_, at) =>
      transferOrder(system, { ...texts, bizId: `large-${at}`, amount: at === 99 ? '0' : '0.01' }),
    )
    const body = JSON.stringify({ transfers }).replaceAll('\u00e9', '\\u00e9')
    const answered: string[] = []
    const connections = await Promise.all(Array.from({ length: 64 }, () => openConnection(system.baseUrl)))
    for (const connection of connections) {
      const headers = await signedHeaders(system, 'POST', batchPath, body)
      const lines = [`Content-Length: ${body.length}`, 'Connection: close']
      connection.write(requestText('POST', batchPath, headers, lines, body.slice(0, -1)))
    }
    await until(
      'only the last byte of each is missing',
      async () =>
        (await readMetric(system.gateways[0]!.internalUrl, 'gateway_body_bytes')) >=
        connections.length * (body.length - 1),
    )
    const answers = connections.map(async connection => {
      const answer = received(connection)
      connection.write(body.at(-1)!)
      expect(await answer).toContain('"S012"')
      answered.push('large')
    })
    expect((await call(modest, 'POST', createPath, modest.order)).body.code).toBe('2000')
    answered.push('small')
    await Promise.all(answers)
    expect(answered.indexOf('small')).toBeLessThan(connections.length / 2)
  })
})

describe('more requests than a gateway handles at the same time', () => {
  const limit = 8
  let system: System
  beforeAll(async () => {
    system = await startSystem({ gatewayEnvironment: { MAX_REQUESTS: String(limit) } })
  })
  afterAll(() => system.stop())

  test('fail with S002 and Retry-After, can be sent again as they are, and keep no other workspace from being served', async () => {
    const modest = await createTenant(system)
    const signed = Array.from({ length: 200 }, (_, at) => ({
      order: transferOrder(system, { bizId: `limited-${at}` }),
      overrides: { nonce: `limited-nonce-${at}`, timestamp: String(Math.floor(Date.now() / 1000)) },
    }))
    const send = ({ order, overrides }: (typeof signed)[number]) => call(system, 'POST', createPath, order, overrides)
    let isOver = false
    const flooding = Promise.all(signed.map(send)).finally(() => (isOver = true))
    while (!isOver) expect((await call(modest, 'GET', '/api/v1/transfer/query/orders')).body.code).toBe('2000')
    const answers = await flooding
    const rejected = signed.filter((_, at) => answers[at]!.body.code !== '2000')
    expect(rejected.length).toBeGreaterThan(0)
    // The other workspace has at most one request at a time.
    expect(rejected.length).toBeLessThanOrEqual(signed.length - (limit - 1))
    for (const { status, headers, body } of answers.filter(({ body }) => body.code !== '2000')) {
      expect({ status, code: body.code }).toEqual({ status: 503, code: 'S002' })
      expect(headers.get('retry-after')).toBe('1')
    }
    for (const each of rejected) expect((await send(each)).body.code).toBe('2000')
  })
})

describe('calls that wait for a core', () => {
  /** How long a command may wait for a batch. */
  const waitMs = 3_000
  /** Batches that have arrived. Only tests answer them. */
  const batches: ReceivedBatch[] = []
  const server = createServer((_request, response) => void response.end('{}'))
  serveBatches(server, batch => batches.push(batch))
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

  afterEach(() => {
    vi.useRealTimers()
  })

  test('are limited in number and time, and each workspace gets its share of the queue', async () => {
    // The clock of the client stands still, so that no call expires before its time.
    vi.useFakeTimers({ toFake: ['performance'] })
    while (client.load().waiting === 0) {
      // Workspaces without a call in flight would be sent at once.
      for (const each of ['greedy', 'modest']) create(each)
      for (let count = 2; count < batchCallLimit; count++) create('in flight')
      await new Promise(setImmediate)
      await new Promise(setImmediate)
    }
    const { inFlight } = client.load()
    await until('the maximum number of batches is in flight', () => batches.length === inFlight)
    for (let count = 0; count < 6_000; count++) create('greedy')
    create('modest')
    await until('one workspace has filled its half of the queue', () => notSent('greedy') > 0)
    // One more of each workspace waits.
    expect(notSent('greedy')).toBe(1_001)
    expect(client.load()).toEqual({ waiting: batchCallLimit + 5_000, inFlight, unhealthyCores: 0 })
    const { calls, reply } = batches[0]!
    reply(calls.map(() => ({ data: null })))
    await until('the next batch has arrived', () => batches.length === inFlight + 1)
    expect(batches.at(-1)!.calls.map(({ input }) => (input as { workspaceId: string }).workspaceId)).toContain('modest')
    vi.advanceTimersByTime(waitMs)
    await until('no call waits any longer', () => client.load().waiting === 0)
    const arrived = batches
      .at(-1)!
      .calls.filter(({ input }) => (input as { workspaceId: string }).workspaceId === 'greedy')
    expect(notSent('greedy')).toBe(6_001 - arrived.length)
    expect(notSent('modest')).toBe(0)
  })
})
