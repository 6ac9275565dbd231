import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { endpoints } from '../gateway/src/api/endpoints.ts'
import { batchPath, type Credentials, call, createPath } from './setup/client.ts'
import { connect } from './setup/database.ts'
import { type System, startSystem } from './setup/system.ts'

/** Lists over HTTP: sections 2.2, 4 and 8.1. Their statements are tested in services/core/src/database/lists. */

let system: System
let source: string
let target: string
const orders: { transferId: string; bizId: string; amount: string; createdAt: string }[] = []
beforeAll(async () => {
  system = await startSystem()
  ;[source, target] = system.wallets.map(({ walletId }) => walletId) as [string, string]
  for (let count = 1; count <= 25; count++) {
    const bizId = `list-${String(count).padStart(2, '0')}`
    const amount = `${((count * 7) % 11) + 1}.${count % 2 === 0 ? '50' : '5'}`
    const body = { sourceWalletId: source, targetWalletId: target, amount, currency: 'USD', bizId }
    const { body: answer } = await call(system, 'POST', createPath, body)
    orders.unshift(answer.data)
  }
})
afterAll(() => system.stop())

const paths = {
  wallets: () => '/api/v1/wallets',
  flows: () => `/api/v1/wallets/${source}/flows`,
  orders: () => '/api/v1/transfer/query/orders',
  walletOrders: () => `/api/v1/transfer/query/orders/wallet/${source}`,
}

async function list(path: string, query = '', credentials: Credentials = system) {
  const { body } = await call(credentials, 'GET', query ? `${path}?${query}` : path)
  expect(body.code, `${path}?${query}`).toBe('2000')
  return body.data
}

async function errorDetail(path: string, query: string) {
  const { status, body } = await call(system, 'GET', `${path}?${query}`, undefined, {
    headers: { 'X-LOCALE': 'en-US' },
  })
  expect([status, body.code, body.message, body.data], query).toEqual([400, 'S012', 'INVALID_PARAMETER', null])
  return body.detail
}

describe('pages', () => {
  test('by default: page 0, size 20, newest first, exact totals', async () => {
    const data = await list(paths.orders())
    expect(data.page).toEqual({ size: 20, number: 0, totalElements: 25, totalPages: 2 })
    expect(data.content).toEqual(orders.slice(0, 20))
    expect((await list(paths.orders(), 'page=1')).content).toEqual(orders.slice(20))
  })

  test('past the last page: empty content, exact totals, the number of the requested page', async () => {
    for (const page of [2, 1_000_000, Number.MAX_SAFE_INTEGER])
      for (const path of Object.values(paths)) {
        const data = await list(path(), `page=${page}&size=100`)
        expect(data.content).toEqual([])
        expect(data.page.number).toBe(page)
        expect(data.page.totalElements).toBeGreaterThan(0)
      }
  })

  test('an empty collection, also by a filter: empty content, the requested size, number 0, totals 0', async () => {
    const empty = await system.admin.wallets.create.mutate({
      workspaceId: system.workspaceId,
      currency: 'JPY',
      name: 'Empty',
    })
    const page = { size: 7, number: 0, totalElements: 0, totalPages: 0 }
    const emptyLists = [
      [`/api/v1/wallets/${empty.walletId}/flows`, 'size=7&page=3'],
      [`/api/v1/transfer/query/orders/wallet/${empty.walletId}`, 'size=7'],
      [paths.orders(), 'size=7&page=1&bizIdPrefix=none'],
      [paths.wallets(), 'size=7&currency=CHF'],
      [paths.flows(), 'size=7&type=WITHDRAWAL'],
    ] as const
    try {
      for (const [path, query] of emptyLists) expect(await list(path, query)).toEqual({ content: [], page })
    } finally {
      // Other tests count the active wallets.
      await system.admin.wallets.changeStatus.mutate({
        workspaceId: system.workspaceId,
        walletId: empty.walletId,
        status: 'CLOSED',
      })
    }
  })

  test('a size above 100 is capped, however large', async () => {
    for (const size of ['101', '1000', '9'.repeat(30)])
      expect((await list(paths.orders(), `size=${size}`)).page).toMatchObject({ size: 100, totalPages: 1 })
  })

  test.each([
    'page=-1',
    'size=-1',
    'size=0',
    'page=',
    'size=',
    'page=1.0',
    'page=1e2',
    'page=+1',
    'page=%201',
    'page=x',
    'page=0x1',
    'page=9007199254740992',
    'page=1&page=1',
    'size=5&size=5',
    'page=%D9%A1',
  ])('S012 for %s on every list', async query => {
    for (const path of Object.values(paths)) expect(await errorDetail(path(), query)).toContain(query.split('=')[0])
  })

  test('S012 for an unknown query parameter of a list; other endpoints ignore the query', async () => {
    for (const path of Object.values(paths))
      for (const query of ['statsu=ACTIVE', 'Page=1', 'pagesize=5', 'x', '?page=0', '__proto__=1', 'toString=1'])
        await errorDetail(path(), query)
    await errorDetail(paths.wallets(), 'bizIdPrefix=a')
    await errorDetail(paths.orders(), 'direction=IN')
    for (const path of [`/api/v1/wallets/${source}`, `/api/v1/wallets/${source}/balance`, `${paths.orders()}/list-01`])
      expect((await call(system, 'GET', `${path}?page=-1&x=y`)).status).toBe(200)
  })
})

describe('order', () => {
  const by = (data: { content: Record<string, unknown>[] }, field: string) => data.content.map(item => item[field])

  test('sorts by every sortable field in both directions; later fields break ties', async () => {
    const newestFirst = orders.map(({ bizId }) => bizId)
    for (const field of ['createdAt', 'updatedAt'])
      for (const path of [paths.orders(), paths.walletOrders()]) {
        expect(by(await list(path, `size=100&sort=${field},desc`), 'bizId')).toEqual(newestFirst)
        expect(by(await list(path, `size=100&sort=${field},asc`), 'bizId')).toEqual(newestFirst.toReversed())
      }
    const numeric = (a: unknown, b: unknown) => Number(a) - Number(b)
    for (const path of [paths.orders(), paths.walletOrders(), paths.flows()]) {
      const amounts = by(await list(path, 'size=100&sort=amount,asc'), 'amount')
      expect(amounts).toEqual(amounts.toSorted(numeric))
    }
    const tied = await list(paths.orders(), 'size=100&sort=amount,desc&sort=createdAt,asc')
    const expected = orders.toSorted((a, b) => numeric(b.amount, a.amount) || (a.bizId < b.bizId ? -1 : 1))
    expect(by(tied, 'bizId')).toEqual(expected.map(({ bizId }) => bizId))
    const names = by(await list(paths.wallets(), 'sort=name,asc'), 'name')
    expect(names).toEqual(names.toSorted())
    expect(by(await list(paths.wallets(), 'sort=amount,desc'), 'balance')[0]).toMatch(/^\d+\.\d\d$/)
    expect(by(await list(paths.wallets(), 'sort=currency,asc'), 'currency')[0]).toBe('EUR')
  })

  test.each([
    'sort=remark,asc',
    'sort=createdAt',
    'sort=createdAt,',
    'sort=createdAt,ASC',
    'sort=,asc',
    'sort=',
    'sort=createdAt,asc,desc',
    'sort=created_at,asc',
    'sort=walletId,asc',
    'sort=amount,asc&sort=amount,desc',
    'sort=amount,asc&sort=x,asc',
    'sort=__proto__,asc',
  ])('S012 for %s', async query => {
    for (const path of Object.values(paths)) await errorDetail(path(), query)
  })

  test('only wallets can be sorted by name and currency', async () => {
    for (const path of [paths.orders(), paths.walletOrders(), paths.flows()])
      for (const field of ['name', 'currency', 'balance']) await errorDetail(path, `sort=${field},asc`)
  })
})

describe('filters', () => {
  const total = async (path: string, query: string) => (await list(path, query)).page.totalElements

  test('of orders: status, currency, creation, both prefixes', async () => {
    for (const path of [paths.orders(), paths.walletOrders()]) {
      expect(await total(path, 'status=COMPLETED')).toBe(25)
      expect(await total(path, 'currency=USD')).toBe(25)
      expect(await total(path, 'currency=EUR')).toBe(0)
      expect(await total(path, 'bizIdPrefix=list-0')).toBe(9)
      expect(await total(path, 'bizIdPrefix=list_')).toBe(0)
      expect(await total(path, 'bizIdPrefix=%25')).toBe(0)
      expect(await total(path, `transferIdPrefix=${orders[3]!.transferId}`)).toBe(1)
      expect(await total(path, 'transferIdPrefix=trf_')).toBe(25)
      expect(await total(path, 'transferIdPrefix=wal_')).toBe(0)
    }
  })

  test('by creation: from is inclusive, to is exclusive, a date without time is midnight UTC', async () => {
    const { createdAt } = orders[10]!
    const same = orders.filter(order => order.createdAt === createdAt).length
    const earlier = orders.filter(order => order.createdAt < createdAt).length
    expect(await total(paths.orders(), `createdTo=${createdAt}`)).toBe(earlier)
    expect(await total(paths.orders(), `createdFrom=${createdAt}`)).toBe(25 - earlier)
    const next = new Date(Date.parse(createdAt) + 1).toISOString()
    expect(await total(paths.orders(), `createdFrom=${createdAt}&createdTo=${next}`)).toBe(same)
    expect(await total(paths.orders(), `createdFrom=${createdAt.replace('Z', '1Z')}&createdTo=${next}`)).toBe(0)
    const offset = `${new Date(Date.parse(createdAt) + 3_600_000).toISOString().slice(0, -1)}%2B01:00`
    expect(await total(paths.orders(), `createdFrom=${offset}`)).toBe(25 - earlier)
    expect(await total(paths.orders(), 'createdFrom=2020-01-01')).toBe(25)
    expect(await total(paths.orders(), 'createdTo=2020-01-01')).toBe(0)
  })

  test('of wallets: status, currency, prefix; of flows: direction, type, prefix', async () => {
    expect(await total(paths.wallets(), 'status=ACTIVE')).toBe(3)
    expect(await total(paths.wallets(), 'status=FROZEN')).toBe(0)
    expect(await total(paths.wallets(), 'currency=USD')).toBe(2)
    expect(await total(paths.wallets(), `walletIdPrefix=${source}`)).toBe(1)
    expect(await total(paths.flows(), 'direction=OUT')).toBe(25)
    expect(await total(paths.flows(), 'direction=IN')).toBe(1)
    expect(await total(paths.flows(), 'type=DEPOSIT')).toBe(1)
    expect(await total(paths.flows(), 'type=TRANSFER')).toBe(25)
    expect(await total(paths.flows(), `transferIdPrefix=${orders[0]!.transferId}`)).toBe(1)
  })

  test('S012 for a search that takes longer than two seconds, with a detail that names its parameter', async () => {
    const query = 'currency=EUR'
    const blocker = await connect(system.database.ownerUrl)
    try {
      // A search that waits for a lock takes as long as one over too many rows. Without the role's lock_timeout, which is
      // shorter, only the limit of searches ends it. It applies to new sessions: those of another core.
      const database = new URL(system.database.ownerUrl).pathname.slice(1)
      await blocker.query(`alter role wallet_service in database ${database} set lock_timeout = 0`)
      const core = await system.startCore()
      const { url: baseUrl } = await system.startGateway({ CORE_URL: core.url })
      const search = () =>
        call({ ...system, baseUrl }, 'GET', `${paths.orders()}?${query}`, undefined, {
          headers: { 'X-LOCALE': 'en-US' },
        })
      await blocker.query('begin; lock table transfer in access exclusive mode')
      const { status, body } = await search()
      expect([status, body.code, body.data]).toEqual([400, 'S012', null])
      expect(body.detail).toMatch(/^currency .* 2 s/)
      await blocker.query('rollback')
      expect((await search()).body.code).toBe('2000')
    } finally {
      await blocker.end()
    }
  })

  test.each([
    ['orders', 'status=PENDING'],
    ['orders', 'status=completed'],
    ['orders', 'currency=usd'],
    ['orders', 'currency='],
    ['orders', 'createdFrom=yesterday'],
    ['orders', 'createdFrom=2026-01-01T00:00:00'],
    ['orders', 'createdFrom=2026-02-30'],
    ['orders', 'createdTo=1767225600'],
    ['orders', 'createdTo='],
    ['orders', 'bizIdPrefix='],
    ['orders', 'bizIdPrefix=%00'],
    ['orders', `transferIdPrefix=${'x'.repeat(65)}`],
    ['orders', 'currency=USD&currency=USD'],
    ['wallets', 'status=OPEN'],
    ['flows', 'direction=BOTH'],
    ['flows', 'type=REFUND'],
  ] as const)('S012 on %s for %s', async (name, query) => {
    expect(await errorDetail(paths[name](), query)).toContain(query.split('=')[0])
  })
})

describe('records', () => {
  test('of a wallet, its balance and its flows', async () => {
    const wallet = (await call(system, 'GET', `/api/v1/wallets/${source}`)).body.data
    const time = expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
    const money = expect.stringMatching(/^\d+\.\d\d$/)
    expect(wallet).toEqual({
      walletId: source,
      bizId: null,
      name: 'Main',
      currency: 'USD',
      status: 'ACTIVE',
      balance: money,
      createdAt: time,
      updatedAt: time,
    })
    const balance = (await call(system, 'GET', `/api/v1/wallets/${source}/balance`)).body.data
    expect(balance).toEqual({
      walletId: source,
      currency: 'USD',
      balance: wallet.balance,
      held: '0.00',
      available: wallet.balance,
      sequence: 26,
      updatedAt: wallet.updatedAt,
    })
    const { content } = await list(paths.flows(), 'size=100')
    expect(content[0]).toEqual({
      flowId: expect.stringMatching(/^flw_/),
      walletId: source,
      sequence: 26,
      direction: 'OUT',
      type: 'TRANSFER',
      amount: orders[0]!.amount,
      balanceAfter: wallet.balance,
      currency: 'USD',
      transferId: orders[0]!.transferId,
      counterpartyWalletId: target,
      createdAt: orders[0]!.createdAt,
    })
    expect(content.at(-1)).toMatchObject({
      sequence: 1,
      direction: 'IN',
      type: 'DEPOSIT',
      amount: '1000.00',
      counterpartyWalletId: null,
    })
    expect(content.map((flow: { sequence: number }) => flow.sequence)).toEqual(
      Array.from({ length: 26 }, (_, at) => 26 - at),
    )
  })

  test('have amounts as they were sent, and balances with the decimals of their currency', async () => {
    const { admin, workspaceId } = system
    const ids: string[] = []
    for (const name of ['Wei 1', 'Wei 2'])
      ids.push((await admin.wallets.create.mutate({ workspaceId, currency: 'ETH', name })).walletId)
    await admin.wallets.deposit.mutate({
      workspaceId,
      walletId: ids[0]!,
      amount: '12345678901234567890.5',
      bizId: randomUUID(),
    })
    const body = { sourceWalletId: ids[0], targetWalletId: ids[1], amount: '0.000000000000000001', currency: 'ETH' }
    const created = await call(system, 'POST', createPath, body)
    expect(created.body.data.amount).toBe('0.000000000000000001')
    const read = await call(system, 'GET', `/api/v1/wallets/${ids[0]}/balance`)
    expect(read.body.data.balance).toBe('12345678901234567890.499999999999999999')
    const { content } = await list(`/api/v1/wallets/${ids[1]}/flows`)
    expect([content[0].amount, content[0].balanceAfter]).toEqual(['0.000000000000000001', '0.000000000000000001'])
  })

  test('of orders say whether they are completed; deposits are not orders', async () => {
    const { transferId, bizId } = orders[0]!
    for (const name of [transferId, bizId])
      expect((await call(system, 'GET', `${paths.orders()}/${name}/completed`)).body.data).toEqual({
        transferId,
        bizId,
        status: 'COMPLETED',
        completed: true,
      })
    const { content } = await list(paths.flows(), 'type=DEPOSIT')
    expect((await call(system, 'GET', `${paths.orders()}/${content[0].transferId}`)).body.code).toBe('T001')
  })

  const money = { amount: '0.01', currency: 'USD' }
  const between = () => ({ sourceWalletId: source, targetWalletId: target, ...money })
  const createWebhookPath = '/api/v1/webhook/command/create'
  const webhookUrl = 'https://shop.example.com/events'
  let webhookId = ''
  const bodies: Record<string, () => object | Promise<object>> = {
    [createPath]: () => ({ ...between(), bizId: 'declared' }),
    [batchPath]: () => ({
      transfers: [
        { ...between(), bizId: 'declared-1' },
        { ...between(), bizId: 'declared-2' },
      ],
    }),
    '/api/v1/transfer/command/reverse': () => ({ reversesTransferId: 'declared', ...money, bizId: 'declared-back' }),
    '/api/v1/hold/command/create': () => ({ walletId: source, ...money, expiresInSeconds: 3600, bizId: 'declared' }),
    '/api/v1/hold/command/release': () => ({ holdId: 'declared' }),
    '/api/v1/wallet/command/create': () => ({ name: 'Declared', currency: 'USD', bizId: 'declared' }),
    '/api/v1/wallet/command/change-status': () => ({ walletId: source, status: 'ACTIVE' }),
    [createWebhookPath]: () => ({ url: webhookUrl, bizId: 'declared' }),
    '/api/v1/webhook/command/update': () => ({ webhookId, concurrency: 2 }),
    '/api/v1/webhook/command/rotate': () => ({ webhookId }),
    '/api/v1/webhook/command/seek': () => ({ webhookId, after: 0 }),
    '/api/v1/webhook/command/delete': async () => {
      const other = await call(system, 'POST', createWebhookPath, { url: webhookUrl, bizId: 'to-delete' })
      return { webhookId: other.body.data.webhookId }
    },
  }
  const commandsFirst = endpoints.toSorted((a, b) => (a.method > b.method ? -1 : a.method < b.method ? 1 : 0))

  test.each(commandsFirst)('$method $path answers with exactly the fields of its schema', async endpoint => {
    const { method, answer } = endpoint
    const params: Record<string, string> = {
      walletId: source,
      bizId: 'declared',
      after: '0',
      at: '2026-11-01',
      from: '2026-10-01',
      to: '2026-11-01',
      webhookId,
    }
    const path = endpoint.path.replaceAll(/:(\w+)/g, (_, name: string) => params[name]!)
    const { body: envelope } = await call(system, method, path, await bodies[endpoint.path]?.())
    expect(envelope.code).toBe('2000')
    if (endpoint.path === createWebhookPath) webhookId = envelope.data.webhookId
    expect(answer.safeParse(envelope.data).error).toBeUndefined()
  })

  test('a bizId may be percent-encoded in a path', async () => {
    const body = { sourceWalletId: source, targetWalletId: target, amount: '1', currency: 'USD', bizId: 'a:b.c_d-e' }
    const created = await call(system, 'POST', createPath, body)
    expect((await call(system, 'GET', `${paths.orders()}/a%3Ab.c_d-e`)).body.data).toEqual(created.body.data)
  })
})
