/** packages/client against a running service: every method, retries over a faulty network, errors, lists and events. */
import { randomUUID } from 'node:crypto'
import {
  AbortedError,
  ApiError,
  ConnectionError,
  type CreateTransfer,
  createWalletClient,
  type EventPage,
  HistoryReplacedError,
  type Hold,
  type IssuedWebhook,
  TimeoutError,
  type TransferOrder,
  UnexpectedResponseError,
  type Wallet,
  type WalletClient,
  type WalletClientOptions,
} from '@workspace-wallet/client'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endpoints } from '../gateway/src/api/endpoints.ts'
import { type FaultProxy, startFaultProxy } from './setup/fault-proxy.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

let system: System
let proxy: FaultProxy
let client: WalletClient
beforeAll(async () => {
  system = await startSystem()
  proxy = await startFaultProxy(system.gateways[0]!.port)
  client = clientOf()
})
afterAll(async () => {
  proxy.cut()
  await system.stop()
})

function clientOf(options: Partial<WalletClientOptions> = {}): WalletClient {
  const { baseUrl, apiKey, apiSecret } = system
  return createWalletClient({ baseUrl, apiKey, apiSecret, ...options })
}

/** A client whose answers are counted, without S002, after which it sends a request again. */
function countingClient(options: Partial<WalletClientOptions> = {}) {
  let answered = 0
  const client = clientOf({
    ...options,
    async fetch(url, init) {
      const response = await fetch(url, init)
      if (response.status !== 503) answered++
      return response
    },
  })
  return { client, answered: () => answered }
}

/** A client of a new workspace, over the proxy, with two wallets of 10 USD. */
async function newTenant(options: Partial<WalletClientOptions> = {}) {
  const tenant = await createTenant(system)
  const [sourceWalletId, targetWalletId] = await Promise.all(
    ['10.00', '10.00'].map(amount => createWallet({ admin: system.admin, ...tenant }, { deposits: [amount] })),
  )
  const client = createWalletClient({ ...tenant, baseUrl: proxy.url, ...options })
  const order = { sourceWalletId: sourceWalletId!, targetWalletId: targetWalletId!, amount: '1.00', currency: 'USD' }
  return { ...tenant, client, order, balance: async () => (await client.wallets.balance(sourceWalletId!)).balance }
}

function orderOf(): CreateTransfer {
  const [main, savings] = system.wallets
  return { sourceWalletId: main!.walletId, targetWalletId: savings!.walletId, amount: '1.00', currency: 'USD' }
}

async function failureOf(call: Promise<unknown>): Promise<unknown> {
  return call.then(
    () => expect.unreachable('the call succeeded'),
    (error: unknown) => error,
  )
}

async function all<Item>(items: AsyncIterable<Item>): Promise<Item[]> {
  return Array.fromAsync(items)
}

test('there is a method for each endpoint, and each returns the record', async () => {
  const called = new Set<string>()
  const client = clientOf({
    fetch(url, init) {
      called.add(`${init?.method} ${new URL(String(url)).pathname}`)
      return fetch(url, init)
    },
  })
  const { wallets, transfers, holds, events, webhooks } = client
  const name = (text: string) => `${text}-${randomUUID()}`

  const wallet: Wallet = await wallets.create({ name: 'Till', currency: 'USD', bizId: name('till') })
  expect(await wallets.changeStatus(wallet.walletId, 'FROZEN')).toMatchObject({ status: 'FROZEN' })
  expect(await wallets.changeStatus(wallet.walletId, 'ACTIVE')).toEqual(await wallets.get(wallet.walletId))
  expect((await wallets.list({ size: 1, sort: 'createdAt,desc' })).content).toMatchObject([{ name: 'Till' }])

  const bizId = name('order')
  const order: TransferOrder = await transfers.create({ ...orderOf(), bizId, targetWalletId: wallet.walletId })
  expect(await transfers.create({ ...orderOf(), bizId, targetWalletId: wallet.walletId })).toEqual(order)
  expect(await transfers.get(bizId)).toEqual(order)
  expect(await transfers.receipt(bizId)).toBe(await transfers.receipt(order.transferId))
  expect(await transfers.isCompleted(order.transferId)).toBe(true)
  expect(await wallets.balance(wallet.walletId)).toMatchObject({ balance: '1.00', available: '1.00', sequence: 1 })
  const past = { walletId: wallet.walletId, currency: 'USD' }
  expect(await wallets.balanceAt(wallet.walletId, '2026-01-31T12:00:00+01:00')).toEqual({
    ...past,
    at: '2026-01-31T11:00:00.000Z',
    balance: '0.00',
    sequence: 0,
  })
  const [from, to] = [new Date('2026-01-01'), new Date('2026-02-01')]
  const empty = { opening: '0.00', closing: '0.00', flowCount: 0, firstSequence: null }
  expect(await wallets.statement(wallet.walletId, from, to)).toMatchObject({ ...past, to: to.toISOString(), ...empty })
  expect((await wallets.flows(wallet.walletId, { direction: 'IN' })).content).toMatchObject([{ amount: '1.00' }])

  const reversal = { reversesTransferId: bizId, amount: '0.25', currency: 'USD', bizId: name('refund') }
  expect(await transfers.reverse(reversal)).toMatchObject({ reversesTransferId: order.transferId, amount: '0.25' })
  const item = { ...orderOf(), targetWalletId: wallet.walletId, bizId: name('item') }
  const batch = await transfers.createBatch({ transfers: [item, { ...reversal, bizId: name('refund') }] })
  expect(batch.transfers.map(each => each.reversesTransferId)).toEqual([null, order.transferId])
  expect((await transfers.list({ bizIdPrefix: bizId })).content).toMatchObject([{ reversedAmount: '0.50' }])
  expect((await transfers.list({ walletId: wallet.walletId })).page.totalElements).toBe(4)

  const terms = { walletId: wallet.walletId, amount: '0.50', currency: 'USD', expiresInSeconds: 3600 }
  const hold: Hold = await holds.create({ ...terms, bizId: name('hold') })
  expect(await holds.get(hold.bizId)).toEqual(hold)
  expect((await holds.list({ walletId: wallet.walletId, status: 'OPEN' })).content).toEqual([hold])
  expect((await holds.list({ bizIdPrefix: hold.bizId })).content).toEqual([hold])
  expect(await holds.release(hold.bizId)).toMatchObject({ status: 'RELEASED' })

  const page: EventPage = await events.read(0, { size: 2, type: ['transfer.completed', 'hold.released'] })
  expect(page.content.map(({ type }) => type)).toEqual(['transfer.completed', 'transfer.completed'])
  expect(await events.read('head')).toMatchObject({ content: [], more: false })

  const url = 'http://127.0.0.1:9/events'
  const { secret, ...webhook }: IssuedWebhook = await webhooks.create({ url, bizId: name('webhook') })
  const { webhookId } = webhook
  expect(secret).toMatch(/^whsec_/)
  expect(await webhooks.create({ url, bizId: webhook.bizId })).toEqual({ ...webhook, secret: null })
  expect(await webhooks.get(webhookId)).toEqual(webhook)
  expect((await webhooks.list({ status: 'ACTIVE' })).content).toEqual([webhook])
  expect(await webhooks.update(webhookId, { status: 'PAUSED' })).toMatchObject({ status: 'PAUSED', url })
  expect(await webhooks.seek(webhookId, 1)).toMatchObject({ position: 1 })
  expect(await webhooks.rotate(webhookId)).toMatchObject({ secret: expect.stringMatching(/^whsec_/) })
  expect(await webhooks.rotate(webhookId, { graceSeconds: 0 })).toMatchObject({ previousSecretUntil: null })
  for (let count = 0; count < 2; count++) expect(await webhooks.delete(webhookId)).toEqual({ webhookId })
  expect(await all(webhooks.listAll())).toEqual([])

  const patterns = endpoints.map(({ method, path }) => ({
    endpoint: `${method} ${path}`,
    pattern: new RegExp(`^${method} ${path.replaceAll(/:\w+/g, '[^/]+')}$`),
  }))
  const missed = patterns.filter(({ pattern }) => ![...called].some(each => pattern.test(each)))
  expect(missed.map(({ endpoint }) => endpoint)).toEqual([])
})

test('request returns data, status and headers of any endpoint', async () => {
  const { data, status, requestId, headers, timestamp } = await client.request<{ content: Wallet[] }>(
    'GET',
    '/api/v1/wallets',
    { query: { size: 1 } },
  )
  expect({ status, requestId }).toEqual({ status: 200, requestId: expect.stringMatching(/^req_/) })
  expect(data.content.length).toBe(1)
  expect(headers.get('cache-control')).toBe('no-store')
  expect(timestamp).toBeGreaterThan(Date.parse('2026-01-01'))
})

describe('errors', () => {
  test('an error code, with a sentence in the language of the client', async () => {
    const error = await failureOf(client.transfers.create({ ...orderOf(), amount: '1000000.00', bizId: 'too-much' }))
    expect(error).toBeInstanceOf(ApiError)
    expect(error).toMatchObject({
      code: 'T002',
      reason: 'INSUFFICIENT_BALANCE',
      status: 422,
      detail: expect.stringMatching(/^[ -~]+$/),
      requestId: expect.stringMatching(/^req_/),
      bizId: 'too-much',
      outcome: 'NOT_EXECUTED',
    })
    const chinese = await failureOf(clientOf({ locale: 'zh-CN' }).wallets.get('wal_1'))
    expect(chinese).toMatchObject({ code: 'W001', detail: expect.stringMatching(/\p{Script=Han}/u) })
  })

  test('the place of the transfer that made a batch fail', async () => {
    const euros = system.wallets.find(({ currency }) => currency === 'EUR')!.walletId
    const transfers = [
      { ...orderOf(), bizId: randomUUID() },
      { ...orderOf(), targetWalletId: euros, bizId: randomUUID() },
    ]
    expect(await failureOf(client.transfers.createBatch({ transfers }))).toMatchObject({ code: 'T003', batchIndex: 1 })
  })

  test('a wrong secret, another server, and none', async () => {
    const wrong = await failureOf(clientOf({ apiSecret: 'wrong' }).wallets.list())
    expect(wrong).toMatchObject({ code: 'GA2012', status: 401, outcome: 'NOT_EXECUTED' })
    const core = await failureOf(clientOf({ baseUrl: new URL(system.coreUrl).origin }).wallets.list())
    expect(core).toBeInstanceOf(UnexpectedResponseError)
    expect(core).toMatchObject({ message: expect.stringContaining('check baseUrl') })
    // Nothing listens on this port, and the system gives it to no program.
    const none = clientOf({ baseUrl: 'http://127.0.0.1:2', maxRetries: 0 })
    const error = await failureOf(none.transfers.create(orderOf()))
    expect(error).toBeInstanceOf(ConnectionError)
    expect(error).toMatchObject({ outcome: 'NOT_EXECUTED', message: expect.stringContaining('could not be sent') })
  })
})

describe('over a faulty network', () => {
  test.each([
    ['before the request arrives', { in: 'request', at: 'POST /api/', passes: 'half', by: 'reset' }],
    ['before the answer', { in: 'answer', at: 'HTTP/1.1 200', passes: 'none', by: 'reset' }],
    ['in the middle of the answer', { in: 'answer', at: '"transferId"', passes: 'half', by: 'reset' }],
  ] as const)('a create is retried and moves the money once: reset %s', async (_, fault) => {
    const { client, order, balance } = await newTenant()
    const happened = proxy.fail(fault)
    const { transferId } = await client.transfers.create(order)
    await happened
    expect(await balance()).toBe('9.00')
    expect(await all(client.transfers.listAll())).toMatchObject([{ transferId }])
  })

  test('a time-out leaves the outcome unknown, and the same bizId resolves it', async () => {
    const { client, order, balance, ...tenant } = await newTenant()
    const lossy = createWalletClient({
      ...tenant,
      maxRetries: 0,
      timeoutMs: 100,
      /** Loses the answer, if it arrives within the time-out. */
      async fetch(url, init) {
        await fetch(url, init)
        init?.signal?.throwIfAborted()
        return new Promise((_, reject) => init?.signal?.addEventListener('abort', () => reject(init.signal?.reason)))
      },
    })
    const body = { ...order, bizId: 'resolved-later' }
    const error = await failureOf(lossy.transfers.create(body))
    expect(error).toBeInstanceOf(TimeoutError)
    expect(error).toMatchObject({ outcome: 'UNKNOWN', bizId: 'resolved-later' })
    expect(await client.transfers.create(body)).toMatchObject({ bizId: 'resolved-later' })
    expect(await balance()).toBe('9.00')
  })

  test('a call that is aborted while it waits for its answer ends at once, with an unknown outcome', async () => {
    const { client, order } = await newTenant()
    const controller = new AbortController()
    const happened = proxy.fail({ in: 'answer', at: 'HTTP/1.1 200', passes: 'none', by: 'freeze' })
    const call = failureOf(client.transfers.create(order, { signal: controller.signal }))
    await happened
    controller.abort('left')
    expect(await call).toBeInstanceOf(AbortedError)
    expect(await call).toMatchObject({ name: 'AbortError', cause: 'left', outcome: 'UNKNOWN' })
  })
})

test.each([3_600_000, -3_600_000])(
  'a clock that is off by %d ms is corrected with one more request',
  async offsetMs => {
    const { client, answered } = countingClient({ now: () => Date.now() + offsetMs })
    await client.transfers.create(orderOf())
    expect(answered()).toBe(2)
    await client.wallets.list()
    expect(answered()).toBe(3)
  },
)

describe('lists', () => {
  test('an iterator returns each item once, while others are created', async () => {
    const { client, order } = await newTenant()
    const made = new Set<string>()
    const create = async () => made.add((await client.transfers.create({ ...order, amount: '0.01' })).transferId)
    for (let count = 0; count < 5; count++) await create()
    const found: string[] = []
    for await (const { transferId } of client.transfers.listAll({ size: 2 })) {
      if (made.size < 9) await create()
      found.push(transferId)
    }
    expect(found).toEqual([...made])
    const [wallet] = await all(client.wallets.listAll())
    expect(await all(client.wallets.allFlows(wallet!.walletId, { size: 3 }))).toHaveLength(10)
    expect(await all(client.holds.listAll())).toEqual([])
  })

  test('an iterator that is left reads no further page', async () => {
    const { client, answered } = countingClient()
    for await (const { walletId } of client.wallets.listAll({ size: 1 })) if (walletId) break
    expect(answered()).toBe(1)
  })
})

describe('events', () => {
  test('following goes on when the gateway is killed, and repeats and misses nothing', async () => {
    const { client, order } = await newTenant({ maxRetries: 1 })
    const controller = new AbortController()
    const { signal } = controller
    const seen: { position: number; cursor: number }[] = []
    let retries = 0
    const follow = (async () => {
      for await (const { content, last } of client.events.follow({
        after: 0,
        afterEventId: null,
        size: 2,
        pollMs: 1,
        signal,
        onRetry: () => retries++,
      }))
        for (const { position } of content) seen.push({ position, cursor: last })
    })()
    const ended = failureOf(follow)
    await until('the first events', () => seen.length >= 4)
    const gateway = system.gateways[0]!
    await gateway.kill('SIGKILL')
    await until('the reads fail', () => retries > 0)
    await system.startGateway({ GATEWAY_PORT: String(gateway.port) })
    await client.transfers.create(order)
    const { last } = await client.events.read('head')
    await until('the last event', () => seen.at(-1)?.position === last)
    expect(seen.map(({ position }) => position)).toEqual(Array.from({ length: last }, (_, at) => at + 1))
    controller.abort()
    expect(await ended).toBeInstanceOf(AbortedError)
  })

  test('untilEnd ends at the end of the log, also if there is nothing to read', async () => {
    const pages = await all(client.events.follow({ after: 0, size: 3, untilEnd: true }))
    const { last, lastEventId } = await client.events.read('head')
    expect(pages.at(-1)).toMatchObject({ last, lastEventId, more: false })
    expect(pages.flatMap(({ content }) => content.map(({ position }) => position))).toEqual(
      Array.from({ length: last }, (_, at) => at + 1),
    )
    expect(await all(client.events.follow({ after: last, afterEventId: lastEventId, untilEnd: true }))).toEqual([])
  })

  test('from the head come new events only; the cursor passes events of other types', async () => {
    const { client, order, workspaceId } = await newTenant()
    const pages = client.events.follow({ after: 'head', types: ['wallet.created'], pollMs: 1 })
    const head = (await pages.next()).value!
    expect(head).toMatchObject({ content: [], last: (await client.events.read('head')).last })
    await client.transfers.create(order)
    const passed = (await pages.next()).value!
    expect(passed).toMatchObject({ content: [], last: head.last + 1, lastEventId: expect.stringMatching(/^evt_/) })
    await client.wallets.create({ name: 'New', currency: 'USD', bizId: 'new' })
    const { content } = (await pages.next()).value!
    expect(content).toMatchObject([{ type: 'wallet.created', workspaceId, data: { bizId: 'new' } }])
    await pages.return()
  })

  test('a history that was replaced is an error', async () => {
    const { client } = await newTenant()
    const first = async (after: number, afterEventId?: string | null) =>
      (await client.events.follow({ after, afterEventId, pollMs: 1 }).next()).value!
    const { last, lastEventId } = await first(0)
    await expect(first(1, lastEventId)).rejects.toThrow(HistoryReplacedError)
    const ahead = await failureOf(first(last + 1, lastEventId))
    expect(ahead).toBeInstanceOf(HistoryReplacedError)
    expect(ahead).toMatchObject({ after: last + 1, expectedEventId: lastEventId, foundEventId: undefined })
    expect(ahead).toMatchObject({ cause: { code: 'E001' } })
    await expect(first(1, null)).rejects.toMatchObject({ expectedEventId: null, foundEventId: expect.any(String) })
  })

  test('a missing scope ends following', async () => {
    const { apiKey, apiSecret } = await createTenant(system, { scopes: ['wallet:read'] })
    const follow = clientOf({ apiKey, apiSecret }).events.follow({ after: 0 })
    await expect(follow.next()).rejects.toMatchObject({ code: 'GA2024' })
  })
})
