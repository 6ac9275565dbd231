import { randomUUID } from 'node:crypto'
import { Decimal, mintId, type SetLimitInput, uuidFromId, type VerifyReport } from '@workspace-wallet/contract'
import { reopenLedger, repairLedger, verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { type Answer, batchPath, type Credentials, call, createPath } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { signRows } from './setup/sign-rows.ts'
import { type System, startSystem } from './setup/system.ts'
import { createKey, createTenant, createWallet } from './setup/workspaces.ts'

/** Limits of what API keys and wallets may spend. Two gateways, each with a core of its own. */

const reversePath = '/api/v1/transfer/command/reverse'
const holdPath = '/api/v1/hold/command/create'

let system: System
let key: Credentials & { workspaceId: string }
let main: string
let savings: string
let names = 0
beforeAll(async () => {
  system = await startSystem({ cores: 2, gateways: 2, oneCorePerGateway: true })
})
afterAll(() => system.stop())
beforeEach(async () => {
  key = await createTenant(system)
  const { admin } = system
  main = await createWallet({ admin, ...key }, { name: 'Main', deposits: ['1000.00'] })
  savings = await createWallet({ admin, ...key }, { name: 'Savings' })
  // Noon of tomorrow. The time of a ledger never runs back, so no day ends during a test.
  await moveLedger(`date_trunc('day', now(), 'UTC') + interval '36 hours'`)
})

/** Sets the time at which the workspace last posted, as if the clock had been ahead. */
async function moveLedger(lastPostedAt: string): Promise<void> {
  const isOurs = `workspace_id = '${uuidFromId('workspace', key.workspaceId)}'`
  const { ownerUrl } = system.database
  await execute(ownerUrl, `update ledger set last_posted_at = ${lastPostedAt} where ${isOurs}`)
  await signRows(ownerUrl, system.chainKey, 'ledger', isOurs)
}

type Bounds = Pick<SetLimitInput, 'perTransfer' | 'perDay'>
const setKeyLimit = (bounds: Bounds, { apiKey } = key) =>
  system.admin.limits.set.mutate({ workspaceId: key.workspaceId, subject: { apiKey }, currency: 'USD', ...bounds })
const setWalletLimit = (bounds: Bounds, walletId = main) =>
  system.admin.limits.set.mutate({ workspaceId: key.workspaceId, subject: { walletId }, currency: 'USD', ...bounds })
const listLimits = async () => (await system.admin.limits.list.query({ workspaceId: key.workspaceId })).limits
const spentToday = async () => (await listLimits()).map(limit => limit.spentToday.toFixed(2))

const order = (amount: string, more: object = {}) => ({
  sourceWalletId: main,
  targetWalletId: savings,
  amount,
  currency: 'USD',
  bizId: `b${++names}`,
  ...more,
})
const post = (path: string, body: object, by: Credentials = key) =>
  call(by, 'POST', path, body, { headers: { 'X-Locale': 'en-US' } })
const pay = (amount: string, more: object = {}, by: Credentials = key) => post(createPath, order(amount, more), by)
const codeOf = ({ status, body }: Answer) => (status === 200 ? '2000' : body.code)
const balanceOf = async (walletId: string) =>
  (await call(key, 'GET', `/api/v1/wallets/${walletId}/balance`)).body.data.balance as string

const expectSound = async () =>
  expect(await verifyLedger(system.admin, { workspaceId: key.workspaceId })).toMatchObject({ ok: true, violations: [] })

test('a daily limit of a key counts its transfers, draws and reversals, and refuses what exceeds it', async () => {
  await setKeyLimit({ perDay: '100.00' })
  const first = await pay('60.00')
  expect(codeOf(first)).toBe('2000')
  const refused = await pay('40.01')
  expect(refused).toMatchObject({ status: 422, body: { code: 'T008', message: 'LIMIT_EXCEEDED', data: null } })
  expect(refused.body.detail).toMatch(/daily limit of 100\.00.*at most 40\.00/)
  const { bizId } = first.body.data
  const reversal = { reversesTransferId: bizId, amount: '30.00', currency: 'USD', bizId: 'reversal' }
  expect(codeOf(await post(reversePath, reversal))).toBe('2000')
  const hold = { walletId: main, amount: '50.00', currency: 'USD', expiresInSeconds: 600, bizId: 'hold' }
  expect(codeOf(await post(holdPath, hold))).toBe('2000')
  expect(codeOf(await pay('10.01', { holdId: 'hold' }))).toBe('T008')
  expect(codeOf(await pay('10.00', { holdId: 'hold' }))).toBe('2000')
  expect(codeOf(await pay('0.01'))).toBe('T008')
  expect(await spentToday()).toEqual(['100.00'])
  await expectSound()
})

test('a limit of a wallet counts every flow out of it, by any key and by operators', async () => {
  const { workspaceId } = key
  await setWalletLimit({ perDay: '100.00' })
  const other = await createKey({ ...system, workspaceId })
  expect(codeOf(await pay('50.00', {}, other))).toBe('2000')
  await system.admin.wallets.withdraw.mutate({ workspaceId, walletId: main, amount: '20.00', bizId: randomUUID() })
  await expect(
    system.admin.wallets.withdraw.mutate({ workspaceId, walletId: main, amount: '30.01', bizId: randomUUID() }),
  ).rejects.toMatchObject({
    data: { appError: { code: 'T008', details: { limit: '100.00', remaining: '30.00' } } },
  })
  await system.admin.wallets.deposit.mutate({ workspaceId, walletId: main, amount: '5000.00', bizId: randomUUID() })
  expect(codeOf(await pay('30.01'))).toBe('T008')
  expect(codeOf(await pay('30.00'))).toBe('2000')
  expect(await spentToday()).toEqual(['100.00'])
  // Its own flows are not limited.
  expect(codeOf(await post(createPath, order('80.00', { sourceWalletId: savings, targetWalletId: main })))).toBe('2000')
  await expectSound()
})

test('a limit of each transfer refuses larger transfers and holds, and counts nothing twice', async () => {
  await setKeyLimit({ perTransfer: '10.00' })
  expect(codeOf(await pay('10.01'))).toBe('T008')
  const hold = { walletId: main, currency: 'USD', expiresInSeconds: 600 }
  expect(codeOf(await post(holdPath, { ...hold, amount: '10.01', bizId: 'large' }))).toBe('T008')
  expect(codeOf(await post(holdPath, { ...hold, amount: '10.00', bizId: 'small' }))).toBe('2000')
  for (let count = 0; count < 5; count++) expect(codeOf(await pay('10.00'))).toBe('2000')
})

test('T008 comes after T003 and T007, and before T002, so that a stolen key cannot probe balances', async () => {
  await setKeyLimit({ perTransfer: '10.00' })
  expect(codeOf(await pay('5000.00'))).toBe('T008')
  expect(codeOf(await pay('50.00', { currency: 'EUR' }))).toBe('T003')
  expect(codeOf(await pay('50.00', { targetWalletId: main }))).toBe('T004')
  expect(codeOf(await pay('9.00', { sourceWalletId: savings, targetWalletId: main }))).toBe('T002')
  const paid = await pay('10.00')
  const reversal = { reversesTransferId: paid.body.data.bizId, currency: 'USD' }
  expect(codeOf(await post(reversePath, { ...reversal, amount: '10.01', bizId: 'more' }))).toBe('T007')
})

test('a replay and a refused transfer count nothing', async () => {
  await setKeyLimit({ perDay: '100.00' })
  const same = order('60.00')
  expect(codeOf(await post(createPath, same))).toBe('2000')
  expect(codeOf(await post(createPath, same))).toBe('2000')
  expect(codeOf(await pay('9999.00'))).toBe('T008')
  expect(codeOf(await pay('1.00', { sourceWalletId: savings, targetWalletId: main, currency: 'EUR' }))).toBe('T003')
  expect(await spentToday()).toEqual(['60.00'])
})

test('a batch counts all of its items or none, and an item sees what the items before it spend', async () => {
  await setKeyLimit({ perDay: '100.00' })
  const refused = await post(batchPath, { transfers: [order('60.00'), order('40.01')] })
  expect(codeOf(refused)).toBe('T008')
  expect(refused.headers.get('x-batch-index')).toBe('1')
  expect(await spentToday()).toEqual(['0.00'])
  expect(codeOf(await post(batchPath, { transfers: [order('60.00'), order('40.00')] }))).toBe('2000')
  expect(await spentToday()).toEqual(['100.00'])
  await expectSound()
})

test('64 racing spenders through two cores never exceed a limit, by a unit', async () => {
  await setKeyLimit({ perDay: '100.00' })
  const second = await createKey({ ...system, workspaceId: key.workspaceId })
  await setKeyLimit({ perDay: '70.07' }, second)
  await setWalletLimit({ perDay: '150.05' })
  const spend = async (by: Credentials, number: number): Promise<Decimal> => {
    let spent = new Decimal(0)
    const at = { ...by, baseUrl: system.gateways[number % 2]!.url }
    for (const amount of ['3.01', '2.00', '1.00', '0.50', '0.01']) {
      const code = codeOf(await pay(amount, {}, at))
      expect(['2000', 'T008']).toContain(code)
      if (code === '2000') spent = spent.plus(amount)
    }
    return spent
  }
  const spent = await Promise.all(Array.from({ length: 64 }, (_, at) => spend(at % 4 < 2 ? key : second, at)))
  const total = Decimal.sum(...spent)
  // What is left is less than the smallest amount that was refused last.
  expect(total.toFixed(2)).toBe('150.05')
  expect(new Decimal(1000).minus(total).toFixed(2)).toBe(await balanceOf(main))
  const byKey = await listLimits()
  for (const limit of byKey) expect(limit.spentToday.lte(limit.perDay!)).toBe(true)
  await expectSound()
})

test('limits count from when they are set, are changed with their count, and end when they are cleared', async () => {
  expect(codeOf(await pay('500.00'))).toBe('2000')
  await setKeyLimit({ perDay: '100.00', perTransfer: '60.00' })
  expect(codeOf(await pay('60.00'))).toBe('2000')
  expect(await setKeyLimit({ perDay: '50.00' })).toMatchObject({ perTransfer: null, perDay: '50.00' })
  expect(await spentToday()).toEqual(['60.00'])
  const refused = await pay('0.01')
  expect(refused.body.detail).toMatch(/at most 0\.00/)
  const { workspaceId, apiKey } = key
  await system.admin.limits.clear.mutate({ workspaceId, subject: { apiKey }, currency: 'USD' })
  expect(await listLimits()).toEqual([])
  expect(codeOf(await pay('300.00'))).toBe('2000')
  await setKeyLimit({ perDay: '100.00' })
  expect(await spentToday()).toEqual(['0.00'])
  await expectSound()
})

test('a cleared limit limits nothing and counts nothing, while another one is set', async () => {
  const { workspaceId, apiKey } = key
  await setWalletLimit({ perDay: '100.00' })
  await setKeyLimit({ perDay: '50.00' })
  await system.admin.limits.clear.mutate({ workspaceId, subject: { apiKey }, currency: 'USD' })
  expect(codeOf(await pay('60.00'))).toBe('2000')
  const hold = { walletId: main, amount: '51.00', currency: 'USD', expiresInSeconds: 600, bizId: 'hold' }
  expect(codeOf(await post(holdPath, hold))).toBe('2000')
  expect(codeOf(await pay('40.01'))).toBe('T008')
  expect(await spentToday()).toEqual(['60.00'])
  await expectSound()
})

test('a day ends when the ledger says so, and never comes back, whatever the clock', async () => {
  await setKeyLimit({ perDay: '100.00' })
  expect(codeOf(await pay('100.00'))).toBe('2000')
  await moveLedger(`last_posted_at + interval '1 day'`)
  expect(await spentToday()).toEqual(['0.00'])
  expect(codeOf(await pay('99.99'))).toBe('2000')
  expect(await spentToday()).toEqual(['99.99'])
  const refused = await pay('0.02')
  const [limit] = await listLimits()
  expect(refused.body.detail).toContain(limit!.resetsAt.toISOString())
  expect(limit!.resetsAt.getTime()).toBeGreaterThan(Date.now() + 24 * 3600_000)
  await expectSound()
})

test('operators get clear errors', async () => {
  const { workspaceId } = key
  const set = (input: object) =>
    system.admin.limits.set.mutate({ workspaceId, subject: { walletId: main }, currency: 'USD', perDay: '1', ...input })
  const appError = (code: string) => ({ data: { appError: { code } } })
  await expect(set({ subject: { walletId: 'wal_unknown' } })).rejects.toMatchObject(appError('NOT_FOUND'))
  await expect(set({ subject: { apiKey: 'ak_unknown' } })).rejects.toMatchObject(appError('NOT_FOUND'))
  for (const malformed of [{ apiKey: 'ak_\0' }, { walletId: 'wal_\0' }]) {
    const { limits } = await system.admin.limits.list.query({ workspaceId: key.workspaceId, subject: malformed })
    expect(limits).toEqual([])
  }
  await expect(set({ currency: 'EUR' })).rejects.toMatchObject(appError('NOT_ALLOWED'))
  await expect(set({ perDay: '1.001' })).rejects.toMatchObject(appError('S012'))
  await expect(set({ workspaceId: 'wsp_unknown' })).rejects.toMatchObject(appError('NOT_FOUND'))
  const clear = system.admin.limits.clear.mutate({ workspaceId, subject: { walletId: main }, currency: 'USD' })
  await expect(clear).rejects.toMatchObject(appError('NOT_FOUND'))
})

test('the role of the service cannot write limits, except through functions that keep their row and count', async () => {
  const { workspaceId, apiKey } = key
  await setKeyLimit({ perDay: '100.00' })
  expect(codeOf(await pay('60.00'))).toBe('2000')
  const workspace = `'${uuidFromId('workspace', workspaceId)}'`
  const { serviceUrl, ownerUrl } = system.database
  const [stored] = await query(ownerUrl, `select mac, day::text from spending_limit where workspace_id = ${workspace}`)
  const refused = (sql: string) => expect(execute(serviceUrl, sql), sql).rejects.toThrow(/denied|refused|violates/)
  await refused('update spending_limit set per_day = 1000')
  await refused('delete from spending_limit')
  await refused(`insert into spending_limit select * from spending_limit where workspace_id = ${workspace}`)
  const mac = `'\\x${(stored!.mac as Buffer).toString('hex')}'`
  const counted = (change: object) =>
    `select count_spending('${JSON.stringify([
      {
        workspace_id: uuidFromId('workspace', workspaceId),
        subject: `key:${apiKey}`,
        currency: 'USD',
        old_mac: mac.slice(1, -1),
        day: '2999-01-01',
        spent: '61.00',
        mac: '\\x00',
        ...change,
      },
    ])}')`
  await refused(counted({ old_mac: '\\x01' }))
  await refused(counted({ subject: 'key:other' }))
  await refused(counted({ day: '2020-01-01' }))
  await refused(counted({ day: stored!.day, spent: '59.00' }))
  await refused(counted({ spent: '100.01' }))
  await refused(counted({ spent: 'NaN' }))
  const time = `(select greatest(last_posted_at, now()) from ledger where workspace_id = ${workspace})`
  const set = (count: number, from: number) =>
    `select set_limit(${workspace}, 'key:${apiKey}', 'USD', 1, 1, '${stored!.day}', 0, ${from}, ${time}, ${mac}, ${count}, ${mac})`
  await refused(set(0, 0))
  await refused(set(2, 0))
  await refused(set(1, 999))
  await expectSound()
  // What it can write has no MAC: core notices before it posts.
  await execute(serviceUrl, set(1, 0))
  expect(codeOf(await pay('1.00'))).toBe('S002')
})

const brokenRulesOf = ({ brokenRules }: VerifyReport) => brokenRules.map(({ rule }) => rule).sort()

test.each([
  ['a larger limit', 'per_day = 9999'],
  ['less spent', 'spent = 0'],
  ['an earlier day', 'day = day - 1'],
  ['a later start of counting', 'counted_from = 99'],
  ['a limit that is cleared', 'per_day = null'],
])('a row modified outside the service halts the workspace: %s', async (_, change) => {
  const { workspaceId, apiKey } = key
  await setKeyLimit({ perDay: '100.00' })
  expect(codeOf(await pay('60.00'))).toBe('2000')
  await execute(
    system.database.ownerUrl,
    `update spending_limit set ${change} where workspace_id = '${uuidFromId('workspace', workspaceId)}'`,
  )
  expect(codeOf(await pay('50.00'))).toBe('S002')
  const report = await verifyLedger(system.admin, { workspaceId })
  expect(brokenRulesOf(report)).toContain('limit-mac')
  // Setting it again replaces the row, and counts from now on.
  await system.admin.limits.set.mutate({ workspaceId, subject: { apiKey }, currency: 'USD', perDay: '100.00' })
  expect(await reopenLedger(system.admin, { workspaceId, force: false })).toMatchObject({ reopened: true })
  expect(codeOf(await pay('100.01'))).toBe('T008')
  expect(codeOf(await pay('100.00'))).toBe('2000')
  await expectSound()
})

test('limits that the role of the service has forged can be cleared after a repair, and the workspace reopened', async () => {
  const { workspaceId, apiKey } = key
  // A repair is refused while the ledger is ahead of the clock.
  await moveLedger('now()')
  await setKeyLimit({ perDay: '100.00' })
  expect(codeOf(await pay('60.00'))).toBe('2000')
  const workspace = `'${uuidFromId('workspace', workspaceId)}'`
  const { serviceUrl, ownerUrl } = system.database
  const [stored] = await query(ownerUrl, `select day::text from spending_limit where workspace_id = ${workspace}`)
  const time = `(select greatest(last_posted_at, now()) from ledger where workspace_id = ${workspace})`
  const forge = (subject: string, count: number) =>
    execute(
      serviceUrl,
      `select set_limit(${workspace}, '${subject}', 'USD', 1, 9999, '${stored!.day}', 0, 0, ${time},
         '\\x01', ${count}, '\\x01')`,
    )
  await forge(`key:${apiKey}`, 1)
  await forge(`key:${mintId('apiKey')}`, 2)
  await forge(`wallet:${uuidFromId('wallet', mintId('wallet'))}`, 3)
  // No command could name them.
  for (const subject of ['forged', 'key:forged', 'key:', 'wallet:1', `key:${apiKey} `, `x key:${apiKey}`])
    await expect(forge(subject, 4)).rejects.toMatchObject({ code: '23514' })
  expect(codeOf(await pay('1.00'))).toBe('S002')
  const { repaired, report } = await repairLedger(system.admin, { workspaceId, dryRun: false })
  expect({ repaired, brokenRules: brokenRulesOf(report) }).toEqual({
    repaired: true,
    brokenRules: ['limit-audit', 'limit-mac', 'limit-spent'],
  })
  for (const limit of await listLimits()) {
    const subject = limit.apiKey === null ? { walletId: limit.walletId! } : { apiKey: limit.apiKey }
    await system.admin.limits.clear.mutate({ workspaceId, subject, currency: 'USD' })
  }
  await setKeyLimit({ perDay: '100.00' })
  expect(await reopenLedger(system.admin, { workspaceId, force: false })).toMatchObject({ reopened: true })
  expect(codeOf(await pay('100.01'))).toBe('T008')
  expect(codeOf(await pay('100.00'))).toBe('2000')
  await expectSound()
})

test('a limit that the owner of the tables has removed for a while is reported, also on a later day', async () => {
  const { workspaceId, apiKey } = key
  const { ownerUrl } = system.database
  const isOurs = `workspace_id = '${uuidFromId('workspace', workspaceId)}'`
  const asOwner = (sql: string) => execute(ownerUrl, `set session_replication_role = replica; ${sql}`)
  await setKeyLimit({ perTransfer: '60.00', perDay: '100.00' })
  expect(codeOf(await pay('60.00'))).toBe('2000')
  await asOwner(`create table if not exists kept_limit as table spending_limit with no data;
    insert into kept_limit select * from spending_limit where ${isOurs}; delete from spending_limit where ${isOurs}`)
  expect(codeOf(await pay('50.00'))).toBe('2000')
  await asOwner(`insert into spending_limit select * from kept_limit where ${isOurs}; drop table kept_limit`)
  await moveLedger(`last_posted_at + interval '1 day'`)
  expect(codeOf(await pay('1.00'))).toBe('2000')
  const report = await verifyLedger(system.admin, { workspaceId })
  expect(report.violations).toEqual([
    {
      rule: 'limit-exceeded',
      message: expect.stringMatching(/^transfer \S+ makes it 110 on \d{4}-\d\d-\d\d, above 100 a day$/),
      ids: { workspaceId, limit: `key:${apiKey}`, currency: 'USD' },
    },
  ])
  // An operator who knows of it lets the limit count from now on.
  await system.admin.limits.clear.mutate({ workspaceId, subject: { apiKey }, currency: 'USD' })
  await setKeyLimit({ perDay: '100.00' })
  await expectSound()
})

test('no day since a limit began to count exceeds it, whatever it allowed later', async () => {
  await setKeyLimit({ perDay: '100.00' })
  expect(codeOf(await pay('90.00'))).toBe('2000')
  await moveLedger(`last_posted_at + interval '1 day'`)
  expect(codeOf(await pay('90.00'))).toBe('2000')
  // Below what was spent on both days.
  await setKeyLimit({ perTransfer: '10.00', perDay: '50.00' })
  await moveLedger(`last_posted_at + interval '1 day'`)
  expect(codeOf(await pay('10.00'))).toBe('2000')
  await setWalletLimit({ perTransfer: '5.00' })
  expect(codeOf(await pay('5.00'))).toBe('2000')
  await expectSound()
})

test.each([
  ['removed', ['audit-target', 'ledger-limit-count']],
  ['reset to its genuine row before the last transfer', ['limit-spent']],
  ['reset to its genuine row before it was lowered', ['limit-audit', 'limit-spent']],
])(
  'a limit that the owner of the tables has %s is reported, and can be cleared or set again',
  async (change, rules) => {
    const { workspaceId, apiKey } = key
    const { ownerUrl } = system.database
    const isOurs = `workspace_id = '${uuidFromId('workspace', workspaceId)}'`
    const asOwner = (sql: string) => execute(ownerUrl, `set session_replication_role = replica; ${sql}`)
    const readRow = async () =>
      (await query(ownerUrl, `select to_jsonb(l)::text as row from spending_limit l where ${isOurs}`))[0]!.row as string
    await setKeyLimit({ perDay: '500.00' })
    const higher = await readRow()
    await setKeyLimit({ perDay: '100.00' })
    const row = change.endsWith('lowered') ? higher : await readRow()
    expect(codeOf(await pay('60.00'))).toBe('2000')
    await asOwner(`delete from spending_limit where ${isOurs}`)
    if (change !== 'removed')
      await asOwner(`insert into spending_limit select * from jsonb_populate_record(null::spending_limit, '${row}')`)
    const report = await verifyLedger(system.admin, { workspaceId })
    expect(brokenRulesOf(report)).toEqual(rules)
    const subject = { workspaceId, subject: { apiKey }, currency: 'USD' }
    if (change !== 'removed') await system.admin.limits.clear.mutate(subject)
    await setKeyLimit({ perDay: '100.00' })
    await expectSound()
    expect(codeOf(await pay('100.01'))).toBe('T008')
    expect(codeOf(await pay('100.00'))).toBe('2000')
  },
)
