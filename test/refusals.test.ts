import { randomUUID } from 'node:crypto'
import { mintId, type RefusalReport } from '@workspace-wallet/contract'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { removeOldRefusals } from '../services/core/src/refusals/queries.ts'
import { call, createPath } from './setup/client.ts'
import { connect, execute, query } from './setup/database.ts'
import { readMetric } from './setup/metrics.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createKey } from './setup/workspaces.ts'

/** Gateways report refused calls to core, where operators find them. */

let system: System
beforeAll(async () => {
  system = await startSystem()
})
afterAll(() => system.stop())

type Filter = Parameters<System['admin']['refusals']['list']['query']>[0]
const list = async (filter: Filter) => (await system.admin.refusals.list.query(filter)).refusals

/** Sends a request that is refused, and returns its request ID once core knows the refusal. */
async function refused(code: string, ...request: Parameters<typeof call>): Promise<string> {
  const answer = await call(...request)
  expect(answer.body.code).toBe(code)
  const requestId = answer.headers.get('x-request-id')!
  await until('core knows the refused call', async () => (await list({ requestId })).length === 1)
  return requestId
}

const report = (change: Partial<RefusalReport> = {}): RefusalReport => ({
  at: new Date(),
  method: 'GET',
  route: '/api/v1/wallets',
  code: 'GA2012',
  step: 'signature',
  detail: 'The signature is wrong.',
  apiKey: system.apiKey,
  address: '203.0.113.7',
  requestId: `req_${randomUUID()}`,
  isSigned: false,
  ...change,
})

test('a refused call is found by request ID, key, code and address, with the sentence that tells why', async () => {
  const key = await createKey(system, { scopes: ['transfer:read'] })
  const { apiKey } = key
  const requestId = await refused('GA2024', key, 'GET', '/api/v1/wallets?page=1')
  const found = await list({ requestId })
  expect(found).toEqual([
    {
      id: expect.any(Number),
      at: expect.any(Date),
      gateway: 'g',
      method: 'GET',
      route: '/api/v1/wallets',
      code: 'GA2024',
      step: 'scope',
      detail: expect.stringContaining('wallet:read'),
      apiKey,
      address: '127.0.0.1',
      requestId,
      isSigned: true,
    },
  ])
  for (const filter of [{ apiKey }, { apiKey, code: 'GA2024' }, { address: '127.0.0.1', code: 'GA2024' }])
    expect(await list(filter)).toContainEqual(found[0])
  for (const filter of [
    { apiKey, code: 'GA2012' },
    { requestId, address: '203.0.113.9' },
  ])
    expect(await list(filter)).toEqual([])
  // A support engineer has only the request ID.
  const { found: objects } = await system.admin.search.find.query({ text: requestId })
  expect(objects).toMatchObject([{ kind: 'refusal', summary: 'GA2024 for GET /api/v1/wallets' }])
})

test('no body, no secret and no header but the ID of a key is reported, and keys that do not exist are', async () => {
  const apiKey = mintId('apiKey')
  await refused('GA2011', { ...system, apiKey }, 'GET', '/api/v1/wallets')
  expect(await list({ apiKey })).toMatchObject([{ code: 'GA2011', step: 'key', isSigned: false }])
  const order = { sourceWalletId: 'secret-body', targetWalletId: 'b', amount: '1.00', currency: 'USD' }
  const requestId = await refused('GA2012', system, 'POST', createPath, order, { secret: 'x'.repeat(43) })
  expect(await list({ requestId })).toMatchObject([{ code: 'GA2012', step: 'signature', apiKey: system.apiKey }])
  const other = { headers: { 'X-Api-Key': '<script>alert(1)</script>' } }
  const unnamed = await refused('GA2011', system, 'GET', '/api/v1/wallets', undefined, other)
  expect(await list({ requestId: unnamed })).toMatchObject([{ apiKey: null }])
  const rows = JSON.stringify(await query(system.database.serviceUrl, 'select * from refusal'))
  for (const text of ['secret-body', system.apiSecret, '<script>']) expect(rows).not.toContain(text)
})

test('a sentence that repeats what a client has sent is cut off', async () => {
  const requestId = await refused('S012', system, 'GET', `/api/v1/wallets?${'x'.repeat(2_000)}=1`)
  const [found] = await list({ requestId })
  expect([...found!.detail].length).toBeLessThanOrEqual(300)
})

test('a flood is dropped and counted, and does not hide the refused calls of others', async () => {
  const key = await createKey(system, { scopes: ['transfer:read'] })
  const [gateway] = system.gateways
  const dropped = async () =>
    Number(
      /^gateway_refusals_dropped_total (\d+)$/m.exec(
        await (await fetch(`${gateway!.internalUrl}/metrics`)).text(),
      )?.[1],
    )
  const before = await dropped()
  const unsigned = { ...system, apiKey: mintId('apiKey') }
  await Promise.all(Array.from({ length: 100 }, () => call(unsigned, 'GET', '/api/v1/wallets')))
  await refused('GA2024', key, 'GET', '/api/v1/wallets')
  expect(await dropped()).toBeGreaterThan(before)
  expect((await list({ apiKey: unsigned.apiKey, limit: 500 })).length).toBeLessThan(100)
})

test('requests do not wait for a core that takes no reports', async () => {
  await execute(system.database.ownerUrl, 'alter table refusal rename to refusal_away')
  for (let count = 0; count < 30; count++)
    expect((await call({ ...system, apiKey: mintId('apiKey') }, 'GET', '/api/v1/wallets')).body.code).toBe('GA2011')
  const [core] = system.cores
  await until('core has failed to store a report', () => core!.output().includes('refusal'))
  expect((await call(system, 'GET', '/api/v1/wallets')).body.code).toBe('2000')
  await execute(system.database.ownerUrl, 'alter table refusal_away rename to refusal')
  await refused('GA2011', { ...system, apiKey: mintId('apiKey') }, 'GET', '/api/v1/wallets')
})

describe('the holder of the token of a gateway', () => {
  test('cannot report under the name of another gateway, or at a time far away', async () => {
    const [future, past] = [report({ at: new Date('2999-01-01') }), report({ at: new Date(0) })]
    await system.gatewayClient.refusals.report.mutate({ refusals: [future, past], dropped: 0 })
    for (const { requestId } of [future, past]) {
      const [found] = await list({ requestId })
      expect(found).toMatchObject({ gateway: 'g' })
      expect(Math.abs(found!.at.getTime() - Date.now())).toBeLessThan(2 * 3600_000)
    }
    // There is no field for a name: one that is sent has no effect.
    const named = report()
    await system.gatewayClient.refusals.report.mutate({
      refusals: [{ ...named, gateway: 'other' } as never],
      dropped: 0,
    })
    expect(await list({ requestId: named.requestId })).toMatchObject([{ gateway: 'g' }])
  })

  test.each([
    ['a long sentence', { detail: 'x'.repeat(301) }],
    ['a null character', { detail: '\u0000' }],
    ['a long route', { route: 'x'.repeat(200) }],
    ['a control character', { requestId: 'a\nb' }],
    ['a long key', { apiKey: 'x'.repeat(65) }],
  ])('cannot store %s', async (_, change) => {
    await expect(
      system.gatewayClient.refusals.report.mutate({ refusals: [report(change)], dropped: 0 }),
    ).rejects.toMatchObject({
      data: { code: 'BAD_REQUEST' },
    })
  })

  test('cannot bring the counter of dropped calls to where it does not count single ones', async () => {
    const dropped = () => readMetric(system.coreUrl, 'core_refusals_dropped_total')
    const reportDropped = (count: number) =>
      system.gatewayClient.refusals.report.mutate({ refusals: [], dropped: count })
    const before = await dropped()
    await reportDropped(Number.MAX_SAFE_INTEGER)
    expect(await dropped()).toBe(before + 1_000_000)
    await reportDropped(1)
    expect(await dropped()).toBe(before + 1_000_001)
  })

  test('cannot store more than core takes in a second', async () => {
    const address = '198.51.100.7'
    const refusals = Array.from({ length: 100 }, () => report({ address }))
    await Promise.all(
      Array.from({ length: 20 }, () => system.gatewayClient.refusals.report.mutate({ refusals, dropped: 0 })),
    )
    const [row] = await query(
      system.database.serviceUrl,
      `select count(*) as stored from refusal where address = '${address}'`,
    )
    // The calls may have taken some seconds, and 2000 were reported.
    expect(Number(row!.stored)).toBeLessThan(2_000)
    expect(await (await fetch(`${system.coreUrl}/metrics`)).text()).toMatch(/^core_refusals_dropped_total [1-9]/m)
  })

  test('reads no refused calls', async () => {
    await expect(system.gatewayClient.refusals.list.query({})).rejects.toMatchObject({ data: { code: 'FORBIDDEN' } })
  })
})

test('calls are kept for seven days, and a number of each kind: those without a signature displace no others', async () => {
  const owner = await connect(system.database.ownerUrl)
  await owner.query('delete from refusal')
  const insert = (count: number, isSigned: boolean, age: string) =>
    owner.query(
      `insert into refusal (received_at, at, gateway, method, route, code, step, detail, address, request_id, is_signed)
       select now() - $1::interval, now(), 'g', 'GET', '/', 'GA2012', 'signature', '', '203.0.113.8', n, $2
       from generate_series(1, $3) n`,
      [age, isSigned, count],
    )
  const left = async () => {
    const { rows } = await owner.query('select is_signed, count(*)::int from refusal group by 1 order by 1')
    return rows.map(({ is_signed, count }) => [is_signed, count])
  }
  await insert(3, true, '8 days')
  await insert(4, true, '1 day')
  await insert(30, false, '1 hour')
  // What is too old is not listed, also before it is removed.
  expect(await list({ address: '203.0.113.8', limit: 500 })).toHaveLength(34)
  await removeOldRefusals(owner, 10)
  expect(await left()).toEqual([
    [false, 10],
    [true, 4],
  ])
  await owner.end()
})

test('a list goes on where the page before it ended', async () => {
  const all = await list({ limit: 500 })
  const found = []
  for (let before: string | undefined; ; ) {
    const page = await system.admin.refusals.list.query({ before, limit: 4 })
    found.push(...page.refusals)
    if (page.next === null) break
    before = page.next
  }
  expect(found).toEqual(all)
})

test('a gateway that stops reports what it has', async () => {
  // Not every one: it does not wait for a core that is busy.
  await until('core knows the refused call', async () => {
    const gateway = await system.startGateway()
    const answer = await call({ ...system, baseUrl: gateway.url, apiKey: mintId('apiKey') }, 'GET', '/api/v1/wallets')
    await gateway.stop()
    return (await list({ requestId: answer.headers.get('x-request-id')! })).length === 1
  })
})

test('whatever is stored with the role of the service, the list of refused calls is answered, with all others', async () => {
  await system.gatewayClient.refusals.report.mutate({ refusals: [report({ address: '203.0.113.9' })], dropped: 0 })
  const long = `repeat('x', 256)`
  const values = {
    id: ['9007199254740992', '9223372036854775807', '-1', '9007199254740991'],
    received_at: [`'infinity'`, `'-infinity'`, `'0044-03-15 BC'`, `'294276-12-31'`],
    at: [`'infinity'`, `'-infinity'`, `'0044-03-15 BC'`, `'294276-12-31'`],
    ...Object.fromEntries(
      ['gateway', 'method', 'route', 'code', 'step', 'detail', 'api_key', 'address', 'request_id'].map(column => [
        column,
        [`''`, `E'\\x01\\n<script>'`, long, `repeat('😀', 64)`, `repeat('x', 3000000)`],
      ]),
    ),
  }
  let stored = 0
  for (const [column, all] of Object.entries(values))
    for (const value of all) {
      const others = [
        'at',
        'gateway',
        'method',
        'route',
        'code',
        'step',
        'detail',
        'address',
        'request_id',
        'is_signed',
      ]
      const columns = [column, ...others.filter(other => other !== column)]
      const insert = `insert into refusal (${columns}) overriding system value
        select ${value}, ${columns.slice(1)} from refusal where address = '203.0.113.9' order by id limit 1`
      await execute(system.database.serviceUrl, insert).then(
        () => stored++,
        (error: { code?: string }) => expect(error.code, insert).toMatch(/^(23|42501)/),
      )
      const addresses = (await list({ limit: 500 })).map(({ address }) => address)
      expect(addresses, insert).toContain('203.0.113.9')
    }
  expect(stored).toBeGreaterThan(20)
})
