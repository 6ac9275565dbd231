import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type Credentials, call } from './setup/client.ts'
import { moveTransfersToPast } from './setup/past.ts'
import { type System, startSystem } from './setup/system.ts'
import { createKey, createTenant, createWallet } from './setup/workspaces.ts'

/** Balances at a time and statements over HTTP. Their answers are compared with lists in services/core/src/wallets. */

let system: System
let tenant: Credentials & { workspaceId: string }
let walletId: string
beforeAll(async () => {
  system = await startSystem()
  tenant = await createTenant(system)
  walletId = await createWallet({ ...system, ...tenant }, { deposits: ['100.50', '0.5'] })
  await system.admin.wallets.withdraw.mutate({
    workspaceId: tenant.workspaceId,
    walletId,
    amount: '20',
    bizId: randomUUID(),
  })
  await moveTransfersToPast(system.database.ownerUrl, tenant.workspaceId)
})
afterAll(() => system.stop())

const get = (path: string, credentials: Credentials = tenant) =>
  call(credentials, 'GET', `/api/v1/wallets/${walletId}/${path}`, undefined, { headers: { 'X-LOCALE': 'en-US' } })
const hoursAgo = (hours: number) => new Date(Date.now() - hours * 3_600_000).toISOString()
const zero = { opening: '0.00', closing: '0.00', totalIn: '0.00', totalOut: '0.00' }
const none = { flowCount: 0, firstSequence: null, lastSequence: null }

test('a balance at a time and a statement have exactly the decimals of the currency', async () => {
  const [from, to] = [hoursAgo(2), hoursAgo(0.5)]
  expect((await get(`balance/${to}`)).body.data).toEqual({
    walletId,
    currency: 'USD',
    at: to,
    balance: '81.00',
    sequence: 3,
  })
  const statement = { walletId, currency: 'USD', from, to, opening: '0.00', closing: '81.00', totalIn: '101.00' }
  expect((await get(`statement/${from}/${to}`)).body.data).toEqual({
    ...statement,
    totalOut: '20.00',
    flowCount: 3,
    firstSequence: 1,
    lastSequence: 3,
  })
  const lines = await get(`flows?createdFrom=${from}&createdTo=${to}`)
  expect(lines.body.data.page.totalElements).toBe(3)
  expect((await get(`statement/${from}/${from}`)).body.data).toEqual({
    walletId,
    currency: 'USD',
    from,
    to: from,
    ...zero,
    ...none,
  })
})

test.each([
  ['2026-01-31T12:00:00Z', '2026-01-31T12:00:00.000Z'],
  ['2026-01-31T12%3A00%3A00Z', '2026-01-31T12:00:00.000Z'],
  ['2026-01-31T12:00:00+02:00', '2026-01-31T10:00:00.000Z'],
  ['2026-01-31T12%3A00%3A00%2B02%3A00', '2026-01-31T10:00:00.000Z'],
  ['2026-01-31T12%3a00%3a00.25%2b02%3a00', '2026-01-31T10:00:00.250Z'],
  ['2026-01-31T12:00:00-02:00', '2026-01-31T14:00:00.000Z'],
  ['2026-01-31', '2026-01-31T00:00:00.000Z'],
  ['%32026-01-31', '2026-01-31T00:00:00.000Z'],
  ['0000-01-01', '0000-01-01T00:00:00.000Z'],
])('the time %s in a path is %s: encoded or not, and a plus is a plus', async (sent, at) => {
  expect((await get(`balance/${sent}`)).body).toMatchObject({
    code: '2000',
    data: { at, balance: '0.00', sequence: 0 },
  })
  expect((await get(`statement/${sent}/${sent}`)).body).toMatchObject({ code: '2000', data: { from: at, to: at } })
})

test.each([
  ['yesterday', 'must be an ISO 8601 time'],
  ['2026-02-30', 'must be an ISO 8601 time'],
  ['2026-01-31T12:00:00', 'must be an ISO 8601 time'],
  ['1769860800', 'must be an ISO 8601 time'],
  ['0000-01-01T00:00+01:00', 'must be an ISO 8601 time'],
  ['%00', 'must be an ISO 8601 time'],
  ["'or''=", 'must be an ISO 8601 time'],
  ['2026-01-31T12:00:00%2002:00', 'has a space where a zone'],
])('S012 for the time %s, also of an unknown wallet', async (sent, sentence) => {
  for (const [path, field] of [
    [`balance/${sent}`, 'at'],
    [`statement/${sent}/2026-01-31`, 'from'],
    [`statement/2026-01-31/${sent}`, 'to'],
    [`../wal_nonsense/balance/${sent}`, 'at'],
  ] as const) {
    const target = `/api/v1/wallets/${path.startsWith('..') ? path.slice(3) : `${walletId}/${path}`}`
    const { status, body } = await call(tenant, 'GET', target, undefined, { headers: { 'X-LOCALE': 'en-US' } })
    expect([status, body.code, body.detail?.slice(0, field.length)], target).toEqual([400, 'S012', field])
    expect(body.detail).toContain(sentence)
  }
})

describe('bounds', () => {
  const latest = /must be at least 30 seconds ago: at most \d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z\.$/

  test('a time less than 30 seconds ago is S012, and detail has the latest time', async () => {
    for (const time of [new Date().toISOString(), hoursAgo(-1), '9999-12-31T23:59:59-12:00'.slice(0, 10)])
      for (const [path, field] of [
        [`balance/${time}`, 'at'],
        [`statement/${time}/${time}`, 'to'],
      ] as const) {
        const { status, body } = await get(path)
        expect([status, body.code], path).toEqual([400, 'S012'])
        expect(body.detail).toMatch(latest)
        expect(body.detail).toMatch(new RegExp(`^${field} `))
      }
  })

  test('from after to, and more than 400 days, are S012 with the bound', async () => {
    const wrongOrder = await get('statement/2026-02-01/2026-01-31')
    expect(wrongOrder.body.detail).toBe('from must not be after to, which is 2026-01-31T00:00:00.000Z.')
    const tooLong = await get('statement/2024-12-26T23:59:59.999Z/2026-01-31')
    expect(tooLong.body.detail).toBe(
      'A statement covers at most 400 days: from must be at least 2024-12-27T00:00:00.000Z.',
    )
    expect((await get('statement/2024-12-27/2026-01-31')).body.data).toMatchObject({ ...zero, ...none })
  })
})

test('both need the scope wallet:read, which is checked before the times', async () => {
  const key = await createKey({ ...system, ...tenant }, { scopes: ['transfer:read'] })
  for (const path of ['balance/nonsense', 'statement/nonsense/nonsense'])
    expect((await get(path, key)).body.code).toBe('GA2024')
})

test('a path with a missing or an additional time names no endpoint', async () => {
  for (const path of [
    'balance/',
    'statement',
    'statement/2026-01-31',
    'statement/2026-01-31/2026-02-01/x',
    'balance/2026/x',
  ])
    expect((await get(path)).body.code, path).toBe('50090201')
})

test('an answer is the same when it is asked for again, whatever is posted since', async () => {
  const [from, to] = [hoursAgo(2), hoursAgo(0.01)]
  const ask = async () => [(await get(`balance/${to}`)).body.data, (await get(`statement/${from}/${to}`)).body.data]
  const first = await ask()
  await system.admin.wallets.deposit.mutate({
    workspaceId: tenant.workspaceId,
    walletId,
    amount: '7',
    bizId: randomUUID(),
  })
  expect(await ask()).toEqual(first)
})
