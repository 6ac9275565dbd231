import { uuidFromId } from '@workspace-wallet/contract'
import { repairLedger } from '@workspace-wallet/core-client'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { type Credentials, call, createPath } from './setup/client.ts'
import { connect } from './setup/database.ts'
import { type LogLine, logLines } from './setup/log-lines.ts'
import { readMetric } from './setup/metrics.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

/**
 * Somebody with the rights of the owner of the tables, but without the chain key, changes a row. The API does not answer a
 * wallet, a balance, an order or a hold that the service has not written, and halts the workspace. Each test has a workspace of
 * its own.
 */

let system: System
let owner: pg.Client
beforeAll(async () => {
  system = await startSystem()
  owner = await connect(system.database.ownerUrl)
  // Changes rows that triggers protect.
  await owner.query('set session_replication_role = replica')
})
afterAll(async () => {
  await owner.end()
  await system.stop()
})

type Books = { key: Credentials & { workspaceId: string }; a: string; b: string; holdId: string; transferId: string }

const post = async (key: Credentials, path: string, body: object) => {
  const answer = await call(key, 'POST', path, body)
  expect(answer.body.code).toBe('2000')
  return answer.body.data
}

/** Wallet `a` has 100.00, has paid `rent` to `b`, of which a part was paid back, and holds 5.00. */
async function newBooks(): Promise<Books> {
  const key = await createTenant(system)
  const a = await createWallet({ ...system, ...key }, { deposits: ['100.00'] })
  const b = await createWallet({ ...system, ...key }, { name: 'Other' })
  const order = { sourceWalletId: a, targetWalletId: b, amount: '20.00', currency: 'USD', bizId: 'rent' }
  const { transferId } = await post(key, createPath, order)
  for (const bizId of ['refund-1', 'refund-2'])
    await post(key, '/api/v1/transfer/command/reverse', {
      ...{ reversesTransferId: 'rent', amount: '3.00', currency: 'USD', bizId },
    })
  const { holdId } = await post(key, '/api/v1/hold/command/create', {
    ...{ walletId: a, amount: '5.00', currency: 'USD', expiresInSeconds: 3600, bizId: 'room' },
  })
  return { key, a, b, holdId, transferId }
}

/** The UUID of no row. */
const nowhere = '00000000-0000-4000-8000-000000000000'
const literal = (walletId: string) => `'${uuidFromId('wallet', walletId)}'`
const isIn = ({ key }: Books) => `workspace_id = '${uuidFromId('workspace', key.workspaceId)}'`
const isA = (books: Books) => `${isIn(books)} and id = ${literal(books.a)}`
const isB = (books: Books) => `${isIn(books)} and id = ${literal(books.b)}`
const isOrder = (books: Books, bizId: string) => `${isIn(books)} and biz_id = '${bizId}'`

const get = ({ key }: Books, path: string) => call(key, 'GET', `/api/v1/${path}`)
const halted = async ({ key: { workspaceId } }: Books) =>
  (await system.admin.ledger.halted.query()).ledgers.find(each => each.workspaceId === workspaceId)

const modified = (what: string) => new RegExp(`^the row of ${what} was modified outside the service$`)
const wallet = modified('wallet wal_\\S+')
const hold = modified('hold hld_\\S+')
const chain = /^transfer trf_\S+, or the one before it in its chain, was written outside the service$/

const walletOf = ({ a }: Books) => `wallets/${a}`
const balanceOf = ({ a }: Books) => `wallets/${a}/balance`
const holdById = ({ holdId }: Books) => `hold/query/holds/${holdId}`
const holdByBizId = () => 'hold/query/holds/room'
const orderById = ({ transferId }: Books) => `transfer/query/orders/${transferId}`
const orderByBizId = () => 'transfer/query/orders/rent'
const isCompleted = () => 'transfer/query/orders/rent/completed'

type Path = (books: Books) => string

/** What is changed, which reads show it, and the reason of the halt. */
const forgeries: [what: string, sql: (books: Books) => string, paths: Path[], reason: RegExp][] = [
  ['the balance', on => `update wallet set balance = 9999 where ${isA(on)}`, [walletOf, balanceOf], wallet],
  ['what is held', on => `update wallet set held = 1 where ${isA(on)}`, [balanceOf], wallet],
  [
    'the time of the first expiry',
    on => `update wallet set held_until = 'epoch' where ${isA(on)}`,
    [balanceOf],
    wallet,
  ],
  ['the sequence of a balance', on => `update wallet set sequence = 77 where ${isA(on)}`, [balanceOf], wallet],
  ['the name of a wallet', on => `update wallet set name = 'Mine' where ${isA(on)}`, [walletOf], wallet],
  ['the bizId of a wallet', on => `update wallet set biz_id = 'mine' where ${isA(on)}`, [walletOf], wallet],
  [
    'the status of a wallet',
    on => `update wallet set status = 'FROZEN', frozen_by = 'OPERATOR' where ${isA(on)}`,
    [walletOf],
    wallet,
  ],
  ['the MAC of a wallet', on => `update wallet set mac = '\\x01' where ${isA(on)}`, [walletOf, balanceOf], wallet],
  [
    'the currency of a wallet',
    on => `update wallet set currency = 'EUR' where ${isA(on)}`,
    [walletOf, balanceOf],
    wallet,
  ],
  [
    'the kind of a wallet',
    on =>
      `update wallet set kind = 'EXTERNAL', currency = 'EUR', number = null, held = 0, held_until = null where ${isA(on)}`,
    [walletOf, balanceOf],
    wallet,
  ],
  [
    'the time of a wallet',
    on => `update wallet set updated_at = updated_at + interval '1 ms' where ${isA(on)}`,
    [balanceOf],
    wallet,
  ],
  [
    'two wallets that changed places',
    on => `update wallet set id = '${nowhere}' where ${isA(on)};
      update wallet set id = ${literal(on.a)} where ${isB(on)};
      update wallet set id = ${literal(on.b)} where ${isIn(on)} and id = '${nowhere}'`,
    [walletOf, balanceOf],
    wallet,
  ],
  [
    'what remains of a hold',
    on => `update hold set remaining = 4, captured = 1 where ${isIn(on)}`,
    [holdById, holdByBizId],
    hold,
  ],
  ['the amount of a hold', on => `update hold set amount = 6, remaining = 6 where ${isIn(on)}`, [holdById], hold],
  [
    'the status of a hold',
    on => `update hold set status = 'CAPTURED', remaining = 0, captured = 5 where ${isIn(on)}`,
    [holdByBizId],
    hold,
  ],
  ['the wallet of a hold', on => `update hold set wallet_id = ${literal(on.b)} where ${isIn(on)}`, [holdById], hold],
  [
    'the amount of a transfer',
    on => `update transfer set amount = 9 where ${isOrder(on, 'rent')}`,
    [orderById, orderByBizId, isCompleted],
    chain,
  ],
  [
    'the target of a transfer',
    on => `update transfer set target_wallet_id = '${nowhere}' where ${isOrder(on, 'rent')}`,
    [orderById],
    chain,
  ],
  [
    'the bizId of a transfer',
    on => `update transfer set biz_id = 'other' where ${isOrder(on, 'rent')}`,
    [orderById],
    chain,
  ],
  [
    'the remark of a transfer',
    on => `update transfer set remark = 'paid' where ${isOrder(on, 'rent')}`,
    [orderByBizId],
    chain,
  ],
  [
    'the type of a transfer',
    on => `update transfer set type = 'DEPOSIT' where ${isOrder(on, 'rent')}`,
    [orderById],
    chain,
  ],
  [
    'the time of a transfer',
    on => `update transfer set created_at = created_at - interval '1 day' where ${isOrder(on, 'rent')}`,
    [orderById],
    chain,
  ],
  [
    'the MAC before that of a transfer',
    on => `update transfer set target_mac = '\\x01' where ${isIn(on)} and type = 'DEPOSIT'`,
    [orderById],
    chain,
  ],
  [
    'what was paid back',
    on => `update transfer set reversed_total = 20 where ${isOrder(on, 'refund-2')}`,
    [orderById, orderByBizId],
    chain,
  ],
  [
    'the order that a reversal reverses',
    on => `update transfer set reverses_id = (select id from transfer where ${isOrder(on, 'refund-1')})
      where ${isOrder(on, 'refund-2')}`,
    [() => 'transfer/query/orders/refund-1', () => 'transfer/query/orders/refund-2'],
    chain,
  ],
  [
    'a transfer that was never posted',
    on =>
      `insert into transfer select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'biz_id', 'forged',
        'position', 99, 'source_sequence', 99, 'target_sequence', 99))).* from transfer t where ${isOrder(on, 'rent')}`,
    [() => 'transfer/query/orders/forged'],
    chain,
  ],
]

/** Asserts that nothing but the code is answered, and that core halts the workspace and says why. */
async function expectRefused(books: Books, path: string, reason: RegExp): Promise<void> {
  const { status, headers, body } = await get(books, path)
  expect([status, body.code, body.data], path).toEqual([503, 'S002', null])
  expect(headers.get('retry-after')).toBe('60')
  expect(await halted(books)).toMatchObject({ reason: expect.stringMatching(reason) })
}

async function modifiedRows(): Promise<number> {
  const tables = ['wallet', 'hold', 'transfer']
  const counts = tables.map(table =>
    readMetric(system.coreUrl, `core_modified_rows_total{table="${table}"}`).catch(() => 0),
  )
  return (await Promise.all(counts)).reduce((sum, count) => sum + count, 0)
}

test.each(forgeries)('%s is not answered, and halts the workspace', async (_, sql, paths, reason) => {
  const books = await newBooks()
  for (const statement of sql(books).split(';\n')) await owner.query(statement)
  expect(await halted(books)).toBeUndefined()
  const counted = await modifiedRows()
  for (const path of paths) await expectRefused(books, path(books), reason)
  expect(await modifiedRows()).toBe(counted + paths.length)
  const isBreach = ({ msg, workspaceId }: LogLine) =>
    workspaceId === books.key.workspaceId && msg.startsWith('ledger breach')
  const alarms = await until('it is logged', () => {
    const found = logLines(system.cores[0]!).filter(isBreach)
    return found.length > 0 && found
  })
  expect(alarms).toMatchObject([{ level: 60, reason: expect.stringMatching(reason) }])
})

test('a repair computes a wallet again, and its balance is answered', async () => {
  const books = await newBooks()
  const { workspaceId } = books.key
  const reads = async () => [
    (await get(books, walletOf(books))).body.data,
    (await get(books, balanceOf(books))).body.data,
  ]
  const before = await reads()
  await owner.query(`update wallet set balance = 9999, held = 0, held_until = null, name = 'Mine' where ${isA(books)}`)
  await expectRefused(books, balanceOf(books), wallet)
  expect(await repairLedger(system.admin, { workspaceId, dryRun: false })).toMatchObject({ reopened: true })
  expect(before[1]).toMatchObject({ balance: '86.00', held: '5.00' })
  expect(await reads()).toEqual(before)
})

test.each<[table: string, path: Path, reason: RegExp]>([
  ['hold', holdById, hold],
  ['transfer', orderById, chain],
])(
  'a row of the table %s is answered again after it was restored and the workspace repaired',
  async (table, path, reason) => {
    const books = await newBooks()
    const { workspaceId } = books.key
    const { data } = (await get(books, path(books))).body
    const set = (remark: string | null) =>
      owner.query(`update ${table} set remark = $1 where ${isIn(books)} and biz_id in ('rent', 'room')`, [remark])
    await set('forged')
    await expectRefused(books, path(books), reason)
    // A repair does not sign it.
    expect(await repairLedger(system.admin, { workspaceId, dryRun: false })).toMatchObject({ reopened: false })
    await expectRefused(books, path(books), reason)
    await set(null)
    expect(await repairLedger(system.admin, { workspaceId, dryRun: false })).toMatchObject({ reopened: true })
    expect((await get(books, path(books))).body).toMatchObject({ code: '2000', data })
  },
)

test('a halted workspace answers what is sound, and other workspaces are not affected', async () => {
  const [books, other] = [await newBooks(), await newBooks()]
  await owner.query(`update wallet set balance = 9999 where ${isA(books)}`)
  // Read together, so that core reads the wallets in one statement.
  const answers = await Promise.all([
    get(books, balanceOf(books)),
    get(other, balanceOf(other)),
    get(books, `wallets/${books.b}/balance`),
  ])
  expect(answers.map(({ body }) => [body.code, body.data?.balance])).toEqual([
    ['S002', undefined],
    ['2000', '86.00'],
    ['2000', '14.00'],
  ])
  for (const path of [holdById, orderById]) expect((await get(books, path(books))).body.code).toBe('2000')
  expect(await halted(books)).toBeDefined()
  expect(await halted(other)).toBeUndefined()
})

test('a forged balance is shown by no command that answers a wallet as it is', async () => {
  const books = await newBooks()
  await owner.query(`update wallet set balance = 9999 where ${isA(books)}`)
  const body = { walletId: books.a, status: 'ACTIVE' }
  const answer = await call(books.key, 'POST', '/api/v1/wallet/command/change-status', body)
  expect([answer.body.code, answer.body.data]).toEqual(['S002', null])
  expect(await halted(books)).toMatchObject({ reason: expect.stringMatching(wallet) })
})

test('a forged reversal is shown by no replay of the transfer that it reverses', async () => {
  const books = await newBooks()
  await owner.query(`update transfer set reversed_total = 20 where ${isOrder(books, 'refund-2')}`)
  const { a, b } = books
  const order = { sourceWalletId: a, targetWalletId: b, amount: '20.00', currency: 'USD', bizId: 'rent' }
  const answer = await call(books.key, 'POST', createPath, order)
  expect([answer.body.code, answer.body.data]).toEqual(['S002', null])
  expect(await halted(books)).toMatchObject({ reason: expect.stringMatching(/^transfer trf_\S+ was written outside/) })
})

test('operators are not shown a deposit that was modified, and the workspace is halted', async () => {
  const books = await newBooks()
  const { workspaceId } = books.key
  const { transfers } = await system.admin.fundings.list.query({ workspaceId })
  const { transferId: name } = transfers[0]!
  expect(await system.admin.fundings.get.query({ name })).toEqual(transfers[0])
  await owner.query(`update transfer set actor = 'operator:ada' where ${isIn(books)} and type = 'DEPOSIT'`)
  const code = { data: { appError: { code: 'S002' } } }
  await expect(system.admin.fundings.get.query({ name })).rejects.toMatchObject(code)
  expect(await halted(books)).toMatchObject({ reason: expect.stringMatching(chain) })
})

test('a trace names what belongs to the transfer and was modified', async () => {
  const books = await newBooks()
  const { workspaceId } = books.key
  const trace = (name: string) => system.admin.transfers.trace.query({ workspaceId, name })
  const { reversals, modified } = await trace('rent')
  expect(modified).toEqual([])
  await owner.query(`update transfer set reversed_total = 20 where ${isOrder(books, 'refund-2')}`)
  const last = reversals[1]!.transferId
  expect(await trace('rent')).toMatchObject({ source: { isGenuine: true }, modified: [last] })
  await owner.query(`update transfer set remark = 'forged' where ${isOrder(books, 'rent')}`)
  expect(await trace('refund-1')).toMatchObject({ source: { isGenuine: true }, modified: [books.transferId] })
})

test('what a trace and a deposit show is what was checked, also if another statement reads something else', async () => {
  const books = await newBooks()
  const { workspaceId } = books.key
  const [deposit] = (await system.admin.fundings.list.query({ workspaceId })).transfers
  const read = async () => ({
    trace: await system.admin.transfers.trace.query({ workspaceId, name: 'rent' }),
    funding: await system.admin.fundings.get.query({ name: deposit!.transferId }),
  })
  const genuine = await read()
  const { rows: columns } = await owner.query(`select attname as name from pg_attribute
    where attrelid = 'transfer'::regclass and attnum > 0 and not attisdropped order by attnum`)
  // Only the statement that also reads MACs gets what the service has written.
  const shown = columns.map(({ name }) =>
    name === 'remark'
      ? `(case when current_query() like '%source_mac%' then remark else 'forged' end)::bounded_text as remark`
      : name,
  )
  await owner.query(`begin;
    alter table transfer rename to transfer_genuine;
    create view transfer as select ${shown.join(', ')} from transfer_genuine;
    grant select on transfer to public;
    commit`)
  try {
    const { transfers } = await system.admin.transfers.search.query({ workspaceId, bizId: 'rent' })
    const { trace, funding } = await read()
    expect({ trace, funding }).toEqual(genuine)
    expect(transfers.map(({ remark }) => remark)).toEqual(['forged'])
  } finally {
    await owner.query('begin; drop view transfer; alter table transfer_genuine rename to transfer; commit')
  }
})
