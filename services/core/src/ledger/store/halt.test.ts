import { randomUUID } from 'node:crypto'
import { uuidFromId } from '@workspace-wallet/contract'
import { reopenLedger, repairLedger, verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { call, createPath } from '../../../../../test/setup/client.ts'
import { connect, execute, query } from '../../../../../test/setup/database.ts'
import { readMetric } from '../../../../../test/setup/metrics.ts'
import { type System, startSystem } from '../../../../../test/setup/system.ts'
import { until } from '../../../../../test/setup/until.ts'
import { createTenant, createWallet } from '../../../../../test/setup/workspaces.ts'

// Rows are modified outside the service, with the rights of the owner of the tables. Each test has its own workspace.
let system: System
beforeAll(async () => {
  system = await startSystem({ waitsForLocks: true, cores: 2, gateways: 2 })
})
/** So that the next test finds no workspace halted. */
afterEach(() => damage(`update ledger set status = 'OPEN' where status = 'HALTED'`))
afterAll(() => system.stop())

type Books = { workspaceId: string; a: string; b: string; pay(): Promise<string>; payOpen(): Promise<string> }

/**
 * Two funded wallets, and functions that transfer from the first to the second, through both gateways in turn. `payOpen` repeats
 * the transfer while a busy machine rejects it: for a workspace that is not halted.
 */
async function newBooks(): Promise<Books> {
  const { workspaceId, ...key } = await createTenant(system, { scopes: ['transfer:create'] })
  const newWallet = () => createWallet({ ...system, workspaceId }, { name: 'Wallet', deposits: ['100.00'] })
  const [a, b] = [await newWallet(), await newWallet()]
  let turn = 0
  async function pay(): Promise<string> {
    const baseUrl = system.gateways[turn++ % 2]!.url
    const order = { sourceWalletId: a, targetWalletId: b, amount: '1.00', currency: 'USD' }
    const { body, headers } = await call({ ...key, baseUrl }, 'POST', createPath, order)
    if (body.code === 'S002') expect(Number(headers.get('retry-after'))).toBeGreaterThan(0)
    return body.code
  }
  const payOpen = () =>
    until('the transfer is not rejected', async () => {
      const code = await pay()
      return code !== 'S002' && code
    })
  return { workspaceId, a, b, pay, payOpen }
}

const wasModified = /^the row of wallet \S+ was modified outside the service$/

/** Copies the current rows of the wallets and the ledger to the schema `kept`. */
const copyRows = (books: Books) =>
  damage(`
    drop schema if exists kept cascade; create schema kept;
    create table kept.wallet as select * from wallet where ${isIn(books)};
    create table kept.ledger as select * from ledger where ${isIn(books)}`)

const damage = (sql: string) => execute(system.database.ownerUrl, `set session_replication_role = replica; ${sql}`)
const isIn = ({ workspaceId }: Books) => `workspace_id = '${uuidFromId('workspace', workspaceId)}'`
const isWallet = (walletId: string) => `id = '${uuidFromId('wallet', walletId)}'`

/** Waits, because a scrape shows the figure before if it cannot read the database within a second. */
async function untilHaltedByMetrics(count: number): Promise<void> {
  for (const { url } of system.cores)
    await until(`${count} are halted`, async () => (await readMetric(url, 'core_halted_workspaces')) === count)
}

async function halted(): Promise<{ workspaceId: string; reason: string }[]> {
  return (await system.admin.ledger.halted.query()).ledgers
}

const reopen = ({ workspaceId }: Books, force = false) => reopenLedger(system.admin, { workspaceId, force })
const appErrorOf = (error: unknown) => (error as { data?: { appError?: unknown } }).data?.appError

const repair = ({ workspaceId }: Books) => repairLedger(system.admin, { workspaceId, dryRun: false })

test('a breach halts its workspace on every core, logs and counts it, and halts no other workspace', async () => {
  const [broken, sound] = [await newBooks(), await newBooks()]
  expect([await broken.payOpen(), await sound.payOpen()]).toEqual(['2000', '2000'])
  await untilHaltedByMetrics(0)
  await damage(`update wallet set balance = 5000.00 where ${isIn(broken)} and ${isWallet(broken.a)}`)

  // Concurrently, so that batches contain postings of both workspaces.
  const codes = await Promise.all(
    Array.from({ length: 16 }, (_, at) => (at % 2 === 0 ? broken.pay() : sound.payOpen())),
  )
  expect(codes.filter((_, at) => at % 2 === 0)).toEqual(Array.from({ length: 8 }, () => 'S002'))
  expect(codes.filter((_, at) => at % 2 === 1)).toEqual(Array.from({ length: 8 }, () => '2000'))

  const reason = `the row of wallet ${broken.a} was modified outside the service`
  expect(await halted()).toEqual([{ workspaceId: broken.workspaceId, reason }])
  await untilHaltedByMetrics(1)
  const alarms = await until('the alarm is logged', () => {
    const lines = system.cores.flatMap(core => core.output().split('\n'))
    const found = lines.slice(0, -1).filter(line => line.includes('ledger breach'))
    return found.length > 0 && found
  })
  expect(alarms.map(line => JSON.parse(line))).toEqual([
    expect.objectContaining({ level: 60, workspaceId: broken.workspaceId, reason }),
  ])

  // A deposit is refused too, although its wallet was not modified.
  const { workspaceId, b: walletId } = broken
  const deposit = await system.admin.wallets.deposit
    .mutate({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
    .catch(appErrorOf)
  expect(deposit).toMatchObject({ kind: 'domain', code: 'S002' })

  expect(await repair(broken)).toMatchObject({ repaired: true, reopened: true, report: { ok: true, workspaces: 1 } })
  expect([await broken.payOpen(), await broken.payOpen()]).toEqual(['2000', '2000'])
  expect(await halted()).toEqual([])
  await untilHaltedByMetrics(0)
})

/** Changes after one payment, when wallet `a` has two entries and there is one order. The next posting detects each. */
const breaches: [string, (books: Books) => string, RegExp][] = [
  ['a balance', ({ a }) => `update wallet set balance = 99.01 where ${isWallet(a)}`, wasModified],
  ['a head that was changed', ({ a }) => `update wallet set head = '\\x01ff' where ${isWallet(a)}`, wasModified],
  ['a name', ({ b }) => `update wallet set name = 'Mine' where ${isWallet(b)}`, wasModified],
  [
    'a time',
    ({ b }) => `update wallet set updated_at = updated_at - interval '1 ms' where ${isWallet(b)}`,
    wasModified,
  ],
  [
    'a wallet reset to an earlier entry',
    ({ a }) => `update wallet w set (balance, sequence, order_count, head) = (
        select balance_after, 1, 0, mac from flow f where f.wallet_id = w.id and f.sequence = 1) where ${isWallet(a)}`,
    wasModified,
  ],
  [
    'a wallet reset to an earlier row with its MAC',
    ({ a }) =>
      `delete from wallet where ${isWallet(a)}; insert into wallet select * from kept.wallet where ${isWallet(a)}`,
    /its next number is already taken$/,
  ],
  [
    'a counter of the workspace that was reset',
    books => `update ledger set order_count = 0 where ${isIn(books)}`,
    /^the row of its ledger was modified outside the service$/,
  ],
  [
    'a ledger reset to an earlier row with its MAC',
    books =>
      `delete from ledger where ${isIn(books)}; insert into ledger select * from kept.ledger where ${isIn(books)}`,
    /its next number is already taken$/,
  ],
]

test.each(breaches)('%s: the next posting halts the workspace and no other one', async (_, damageOf, reason) => {
  const [broken, sound] = [await newBooks(), await newBooks()]
  await copyRows(broken)
  expect(await broken.payOpen()).toBe('2000')
  await damage(damageOf(broken))
  const codes = await Promise.all([broken.pay(), sound.payOpen(), broken.pay(), sound.payOpen()])
  expect(codes).toEqual(['S002', '2000', 'S002', '2000'])
  const { workspaceId } = broken
  expect(await halted()).toContainEqual({ workspaceId, reason: expect.stringMatching(reason) })
  expect((await verifyLedger(system.admin, { workspaceId })).ok).toBe(false)
})

test('a wallet reset to an earlier row: a receipt with the sequence of a payment halts the workspace', async () => {
  const books = await newBooks()
  await copyRows(books)
  expect(await books.payOpen()).toBe('2000')
  const { workspaceId, a: walletId } = books
  await damage(
    `delete from wallet where ${isWallet(walletId)}; insert into wallet select * from kept.wallet where ${isWallet(walletId)}`,
  )
  const deposit = await system.admin.wallets.deposit
    .mutate({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
    .catch(appErrorOf)
  expect(deposit).toMatchObject({ kind: 'domain', code: 'S002' })
  const reason = expect.stringMatching(/its next number is already taken$/)
  expect(await halted()).toContainEqual({ workspaceId, reason })
})

test('a failed halt does not affect the results of other postings in the same batch', async () => {
  // Created first, so that it is posted before the other is found broken.
  const [sound, broken] = [await newBooks(), await newBooks()]
  expect(await broken.payOpen()).toBe('2000')
  await damage(`update ledger set order_count = 0 where ${isIn(broken)};
    create function refuse() returns trigger language plpgsql as $$ begin raise 'no halt'; end $$;
    create trigger refuse before insert on audit for each row when (new.action = 'ledger.halt') execute function refuse()`)
  const codes = await Promise.all(
    Array.from({ length: 64 }, (_, at) => (at % 2 === 0 ? sound.payOpen() : broken.pay())),
  ).finally(() => damage('drop trigger refuse on audit; drop function refuse()'))
  expect(codes).toEqual(codes.map((_, at) => (at % 2 === 0 ? '2000' : 'S002')))
  expect(await halted()).toEqual([])

  expect(await broken.pay()).toBe('S002')
  expect(await halted()).toHaveLength(1)
})

test('halts that wait for a lock of somebody else delay no other workspace for long', async () => {
  const [sound, ...broken] = [await newBooks(), await newBooks(), await newBooks(), await newBooks()]
  await damage(
    broken.map(books => `update wallet set balance = 5000.00 where ${isIn(books)} and ${isWallet(books.a)}`).join(';'),
  )
  // Of the owner: core ends sessions of its own role that hold locks.
  const blocker = await connect(system.database.ownerUrl)
  try {
    await blocker.query('begin')
    await blocker.query(`select from audit_head where ${broken.map(isIn).join(' or ')} for update`)
    const codes = broken.map(({ pay }) => pay())
    await until('two halts wait for the lock', async () => {
      const [row] = await query(
        system.database.ownerUrl,
        `select count(*) as n from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`,
      )
      return Number(row!.n) >= 2
    })
    expect(await Promise.all([sound.pay(), sound.pay()])).toEqual(['2000', '2000'])
    expect(await Promise.all(codes)).toEqual(['S002', 'S002', 'S002'])
    expect(await halted()).toEqual([])
  } finally {
    await blocker.end()
  }
  await until('all three are halted', async () => (await halted()).length === 3)
})

test('a workspace that somebody opens again each time is halted once a second at most by each core', async () => {
  const books = await newBooks()
  await damage(`update wallet set balance = 5000.00 where ${isIn(books)} and ${isWallet(books.a)}`)
  const startedAt = performance.now()
  for (let turn = 0; turn < 40; turn++) {
    expect(await books.pay()).toBe('S002')
    await damage(`update ledger set status = 'OPEN' where ${isIn(books)}`)
  }
  const seconds = (performance.now() - startedAt) / 1000
  const [row] = await query(
    system.database.ownerUrl,
    `select count(*)::int as n from audit where ${isIn(books)} and action = 'ledger.halt'`,
  )
  expect(row!.n).toBeGreaterThan(0)
  expect(row!.n).toBeLessThanOrEqual(system.cores.length * (seconds + 1))
})

test('reopening is refused while the ledger breaks a rule, unless it is forced, and the audit records who did it', async () => {
  const books = await newBooks()
  await books.payOpen()
  await damage(`update wallet set balance = 5000.00 where ${isIn(books)} and ${isWallet(books.b)}`)
  expect(await books.pay()).toBe('S002')
  expect(await reopen(books)).toMatchObject({
    reopened: false,
    report: {
      ok: false,
      violations: [
        { rule: 'wallet-balance', ids: { walletId: books.b } },
        { rule: 'wallet-mac', ids: { walletId: books.b } },
      ],
    },
  })
  expect(await books.pay()).toBe('S002')
  expect(await halted()).toHaveLength(1)

  // After a forced reopening, the next posting with that wallet halts the ledger again.
  expect(await reopen(books, true)).toMatchObject({ reopened: true, report: { ok: false } })
  expect(await halted()).toEqual([])
  expect(await books.pay()).toBe('S002')
  expect(await halted()).toHaveLength(1)

  expect(await repair(books)).toMatchObject({ reopened: true })
  expect(await books.payOpen()).toBe('2000')
  const haltReason = `the row of wallet ${books.b} was modified outside the service`
  const actions = await query(
    system.database.ownerUrl,
    `select actor, before, after from audit where ${isIn(books)} and action = 'ledger.reopen' order by id`,
  )
  const row = { actor: 'admin:a', before: { status: 'HALTED', haltReason } }
  expect(actions).toEqual([
    { ...row, after: { status: 'OPEN', forced: true, violations: 2 } },
    { ...row, after: { status: 'OPEN', forced: false, violations: 0 } },
  ])
})

test('only a halted ledger can be reopened', async () => {
  const books = await newBooks()
  const refused = await reopen(books).catch(appErrorOf)
  expect(refused).toMatchObject({ kind: 'admin', code: 'NOT_ALLOWED' })
  for (const workspaceId of ['wsp_01k9x5zq3sf4x9vtgkz3b8cdef', 'nonsense'])
    expect(await reopen({ ...books, workspaceId }).catch(appErrorOf)).toMatchObject({
      kind: 'admin',
      code: 'NOT_FOUND',
    })
})

test('reopening does not sign a ledger row that was modified after the verification read it', async () => {
  const books = await newBooks()
  await damage(`update wallet set name = 'Mine' where ${isIn(books)} and ${isWallet(books.b)}`)
  expect(await books.pay()).toBe('S002')
  await damage(`update wallet set name = 'Wallet' where ${isIn(books)} and ${isWallet(books.b)}`)

  const blocker = await connect(system.database.ownerUrl)
  try {
    // The verification takes its snapshot before it waits for this lock.
    await blocker.query('begin; lock table audit in access exclusive mode')
    const reopening = reopen(books).catch((error: Error) => error)
    await until('the verification waits', async () => {
      const waiting = `select from pg_stat_activity
        where datname = current_database() and application_name = 'core verify' and wait_event_type = 'Lock'`
      return (await query(system.database.ownerUrl, waiting)).length > 0
    })
    await damage(`update ledger set last_posted_at = '2099-01-01' where ${isIn(books)}`)
    await blocker.query('commit')
    expect(await reopening).toMatchObject({ message: expect.stringContaining('was modified outside the service') })
  } finally {
    await blocker.end()
  }
  expect(await halted()).toMatchObject([{ workspaceId: books.workspaceId }])
  expect(await repair(books)).toMatchObject({ repaired: true, reopened: true, report: { ok: true } })
  expect(await books.payOpen()).toBe('2000')
  const after = await query(
    system.database.ownerUrl,
    `select last_posted_at > now() + interval '1 day' as "isAhead" from ledger where ${isIn(books)}`,
  )
  expect(after).toEqual([{ isAhead: false }])
})
