import { randomUUID } from 'node:crypto'
import { uuidFromId, type VerifyReport } from '@workspace-wallet/contract'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../../test/setup/core.ts'
import { connect, schema } from '../../../../../test/setup/database.ts'
import { findingsInRows } from '../../../../../test/setup/verification/rows.ts'
import { transact } from '../../database/orm.ts'
import { Snapshot, snapshotClient } from '../../database/snapshot.ts'
import { BaselineDigest, readBaseline, type VerifiedEnd } from '../verify/baseline.ts'
import { verifyLedger } from '../verify/verify.ts'
import { writeEnds } from './queries.ts'

// Posts at random, verifies what is new again and again, and then changes rows as the owner of the tables.
let testCore: TestCore
let owner: pg.Client
let books: Books[]
/** The digest of where the last sound verification ended. */
let since: string
/** The tables whose genuine earlier rows the owner puts back. */
const keptTables = ['wallet', 'ledger', 'hold', 'member', 'audit_head'] as const

type Books = { workspaceId: string; wallets: string[]; paid: string[] }

let seed = 7
/** A whole number below `limit`: the same ones in every run. */
function pick(limit: number): number {
  seed = (seed * 1_103_515_245 + 12_345) % 2_147_483_648
  return Math.floor((seed / 2_147_483_648) * limit)
}
const oneOf = <Item>(items: readonly Item[]): Item => items[pick(items.length)]!

const caller = { requestId: 'test' }

beforeAll(async () => {
  testCore = await openTestCore()
  owner = await connect(testCore.database.ownerUrl)
  await owner.query('set session_replication_role = replica')
  // The verification reports tables of others in the schema of ours.
  await owner.query('create schema kept')
  books = [await newBooks(), await newBooks()]
  await operate(60)
  since = (await verifyAll(null)).digest!
})
afterAll(async () => {
  await owner.end()
  await testCore.close()
})

async function newBooks(): Promise<Books> {
  const admin = testCore.as('admin')
  const { workspaceId } = await admin.workspaces.create({ name: 'Books' })
  const wallets: string[] = []
  for (let count = 0; count < 4; count++) {
    const { walletId } = await admin.wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
    await admin.wallets.deposit({ workspaceId, walletId, amount: '1000.00', caller, bizId: randomUUID() })
    wallets.push(walletId)
  }
  await admin.limits.set({ workspaceId, subject: { walletId: wallets[0]! }, currency: 'USD', perDay: '5000.00' })
  return { workspaceId, wallets, paid: [] }
}

/** Random operations of clients and operators. */
async function operate(count: number): Promise<void> {
  const [admin, service] = [testCore.as('admin'), testCore.as('service')]
  for (let done = 0; done < count; done++) {
    const ledger = oneOf(books)
    const { workspaceId, wallets, paid } = ledger
    const sourceWalletId = oneOf(wallets)
    const targetWalletId = oneOf(wallets.filter(each => each !== sourceWalletId))
    const order = { sourceWalletId, targetWalletId, amount: `${1 + pick(5)}.00`, currency: 'USD' }
    const hold = () =>
      service.holds.create({
        workspaceId,
        caller,
        hold: {
          walletId: sourceWalletId,
          amount: '2.00',
          currency: 'USD',
          expiresInSeconds: 3600,
          bizId: randomUUID(),
        },
      })
    await oneOf([
      async () => void paid.push((await service.transfers.create({ workspaceId, caller, order })).transferId),
      async () => void paid.push((await service.transfers.create({ workspaceId, caller, order })).transferId),
      async () => {
        const transfers = ['0.10', '0.20'].map(amount => ({ ...order, amount, bizId: randomUUID() }))
        await service.transfers.batch({ workspaceId, caller, batch: { transfers } })
      },
      async () => {
        const reversesTransferId = oneOf(paid)
        if (!reversesTransferId) return
        const reversal = { reversesTransferId, amount: '0.01', currency: 'USD', bizId: randomUUID() }
        await service.transfers.reverse({ workspaceId, caller, reversal })
      },
      async () => {
        const { holdId } = await hold()
        const drawn = { ...order, amount: '1.00', holdId, holdRemainder: oneOf(['KEEP', 'RELEASE'] as const) }
        if (pick(2)) await service.transfers.create({ workspaceId, caller, order: drawn })
      },
      async () => {
        const { holdId } = await hold()
        await service.holds.release({ workspaceId, caller, holdId })
      },
      async () =>
        void (await admin.wallets.deposit({
          workspaceId,
          walletId: sourceWalletId,
          amount: '3.00',
          caller,
          bizId: randomUUID(),
        })),
      async () => {
        const { walletId } = await admin.wallets.create({ workspaceId, currency: oneOf(['USD', 'EUR']), name: 'Other' })
        await admin.wallets.changeStatus({ workspaceId, walletId, status: 'FROZEN' })
      },
      async () => void (await admin.members.add({ workspaceId, userId: `user-${randomUUID()}` })),
    ])()
  }
}

type Verified = { report: VerifyReport; digest: string | null; ends: VerifiedEnd[] }

async function verifyOnly(from: string | null): Promise<Verified> {
  const { core, chainKey } = testCore
  const { databaseUrl, databaseWriters: writers, number: place } = core
  const verification = { databaseUrl, place, chainKey, writers, workspaceId: null, checkpoint: null, since: from }
  const ends: VerifiedEnd[] = []
  for await (const event of verifyLedger(verification)) {
    if (event.kind === 'ends') ends.push(...event.ends)
    if (event.kind !== 'result') continue
    const digest = new BaselineDigest()
    for (const end of ends) digest.add(end)
    return { report: event.report, digest: event.report.ok ? digest.end() : null, ends }
  }
  throw new Error('the verification gave no result')
}

/** Verifies, and keeps where it ended. */
async function verifyAll(from: string | null): Promise<Verified> {
  const verified = await verifyOnly(from)
  expect(verified.report).toMatchObject({ ok: true, violations: [] })
  await transact(testCore.core.orm, em => writeEnds(em, verified.ends))
  return verified
}

async function count(sql: string): Promise<number> {
  const { rows } = await owner.query<{ count: string }>(`select count(*) from ${sql}`)
  return Number(rows[0]!.count)
}

const isNew = (table: string) =>
  `${table}.position > (select position from verified_ledger v where v.workspace_id = ${table}.workspace_id)`

test('incremental verifications read what is new, and end where a whole one ends', async () => {
  for (let round = 0; round < 4; round++) {
    if (round === 2) books.push(await newBooks())
    await operate(20)
    const transfers = await count(
      `transfer t left join verified_ledger v on v.workspace_id = t.workspace_id where t.position > coalesce(v.position, 0)`,
    )
    expect(transfers).toBeGreaterThan(0)
    const whole = await verifyOnly(null)
    const { report, digest, ends } = await verifyAll(since)
    expect(report).toMatchObject({ transfers, flows: 2 * transfers })
    expect(ends).toEqual(whole.ends)
    expect(digest).toBe(whole.digest)
    since = digest!
  }
  const idle = await verifyAll(since)
  expect(idle.report).toMatchObject({ transfers: 0, flows: 0 })
  expect(idle.digest).toBe(since)
})

/** Rows that an incremental verification reads: everything but old events, old holds that have ended, and old deposits and withdrawals. */
const promised: Record<string, string> = {
  transfer: isNew('transfer'),
  journal: isNew('journal'),
  hold: `status = 'OPEN' or exists (select from journal where journal.hold_id = hold.id and ${isNew('journal')})`,
  wallet: 'true',
  ledger: 'true',
  workspace: 'true',
  member: 'true',
  spending_limit: 'true',
  audit_head: 'position > 0',
  audit: `action not in ('wallet.deposit', 'wallet.withdraw')
    or position > (select audit_position from verified_ledger v where v.workspace_id = audit.workspace_id)`,
}

const otherValues: Record<string, string> = {
  text: `'changed'`,
  numeric: '7.77',
  bigint: '7777777',
  uuid: `'01890a5d-ac96-774b-bcce-b302099a8057'`,
  'timestamp with time zone': `'2001-01-01T00:00:00Z'`,
  date: `'2001-01-01'`,
  bytea: `'\\x00'`,
  json: `'{"changed":true}'`,
}

/** Changes rows as the owner, verifies, and puts them back. */
function verifyChanged(change: () => Promise<unknown>): Promise<{ incremental: VerifyReport; whole: VerifyReport }> {
  return afterChange(change, async () => {
    const incremental = await verifyOnly(since)
    const whole = await verifyOnly(null)
    return { incremental: incremental.report, whole: whole.report }
  })
}

async function afterChange<Result>(change: () => Promise<unknown>, check: () => Promise<Result>): Promise<Result> {
  const tables = Object.keys(promised)
  for (const table of tables) await owner.query(`create table kept.undo_${table} as table ${table}`)
  try {
    await change()
    return await check()
  } finally {
    for (const table of tables)
      await owner.query(`delete from ${table};
        insert into ${table} ${table === 'audit' ? 'overriding system value' : ''} select * from kept.undo_${table};
        drop table kept.undo_${table}`)
  }
}

/** Whether the rows are sound. Without the definitions of the database, whose check takes most of the time. */
async function areSound(client: pg.Client, from: string | null): Promise<boolean> {
  const snapshot = await Snapshot.begin(client, schema)
  const of = { chainKey: testCore.chainKey, place: testCore.core.number }
  const findings = await findingsInRows(snapshot, of, from === null ? null : await readBaseline(snapshot, from))
  await client.query('rollback')
  return findings.ok
}

test('random changes of every row that it reads are found', { timeout: 240_000 }, async () => {
  await operate(30)
  const { rows: columns } = await owner.query<{ table: string; column: string; type: string }>(
    `select table_name as table, column_name as column, data_type as type from information_schema.columns
     where table_schema = '${schema}' and table_name = any ($1) order by 1, 2`,
    [Object.keys(promised)],
  )
  const service = snapshotClient(testCore.core.databaseUrl, 'test')
  await service.connect()
  const unnoticed: string[] = []
  let changed = 0
  while (changed < 16) {
    const { table, column, type } = oneOf(columns)
    const where = `ctid = (select ctid from ${table} where ${promised[table]} order by md5(ctid::text || ${pick(1_000_000)}) limit 1)`
    const isRemoved = pick(4) === 0
    const sql = isRemoved
      ? `delete from ${table} where ${where}`
      : `update ${table} set ${column} = ${otherValues[type] ?? 'null'} where ${where} and ${column}::text is distinct from (${otherValues[type] ?? 'null'})::text`
    // A constraint rejects some changes.
    let affected = 0
    const change = async () => {
      affected = (await owner.query(sql).catch(() => ({ rowCount: 0 }))).rowCount ?? 0
    }
    await afterChange(change, async () => {
      if (affected === 0) return
      changed++
      const isNoticed = !(await areSound(service, since))
      expect(await areSound(service, null), sql).toBe(!isNoticed)
      if (!isNoticed) unnoticed.push(sql)
    })
  }
  await service.end()
  expect(unnoticed).toEqual([])
})

/** The condition for the last transfers of the workspace that end the chains of both of their wallets. */
const lastOfBoth = (id: string) => `
  select t.id, t.source_wallet_id as source, t.target_wallet_id as target, t.position from transfer t
  join wallet s on s.workspace_id = t.workspace_id and s.id = t.source_wallet_id and s.sequence = t.source_sequence
  join wallet d on d.workspace_id = t.workspace_id and d.id = t.target_wallet_id and d.sequence = t.target_sequence
  where t.workspace_id = '${id}' and t.type = 'TRANSFER'`

test('a transfer before the last verification that was removed together with genuine earlier rows of its wallets is found', async () => {
  const { workspaceId, wallets } = books[0]!
  const id = uuidFromId('workspace', workspaceId as never)
  const service = testCore.as('service')
  await owner.query('create table kept.wallet as table wallet')
  // The first wallet has a limit, which would show it as well.
  const [another, sourceWalletId, targetWalletId, other] = wallets as [string, string, string, string]
  const pay = (source: string, target: string) =>
    service.transfers.create({
      workspaceId,
      caller,
      order: { sourceWalletId: source, targetWalletId: target, amount: '1.00', currency: 'USD' },
    })
  const { transferId } = await pay(sourceWalletId, targetWalletId)
  // Other wallets continue the log, so that its end does not show the gap.
  await pay(other, another)
  since = (await verifyAll(since)).digest!
  expect(await count(`(${lastOfBoth(id)}) t where id = '${uuidFromId('transfer', transferId)}'`)).toBe(1)
  const both = `id in ('${uuidFromId('wallet', sourceWalletId as never)}', '${uuidFromId('wallet', targetWalletId as never)}')`
  const { incremental, whole } = await verifyChanged(() =>
    owner.query(`delete from transfer where id = '${uuidFromId('transfer', transferId)}';
      delete from wallet where ${both}; insert into wallet select * from kept.wallet where ${both}; drop table kept.wallet`),
  )
  expect(incremental.violations).toMatchObject([{ rule: 'verified-wallets', ids: { workspaceId } }])
  expect(whole.brokenRules.map(({ rule }) => rule)).toContain('log-position')
})

test('a history that was truncated before the last verification, and continued, is found', async () => {
  const { workspaceId, wallets } = books[1]!
  const id = uuidFromId('workspace', workspaceId as never)
  for (const table of keptTables) await owner.query(`create table kept.${table} as table ${table}`)
  const [, sourceWalletId, targetWalletId] = wallets as [string, string, string]
  const order = { sourceWalletId, targetWalletId, amount: '1.00', currency: 'USD' }
  await testCore.as('service').transfers.create({ workspaceId, caller, order })
  since = (await verifyAll(since)).digest!
  const { incremental, whole } = await verifyChanged(async () => {
    await owner.query(`delete from transfer where workspace_id = '${id}' and position > (
        select position from kept.ledger where workspace_id = '${id}')`)
    for (const table of ['wallet', 'ledger'])
      await owner.query(`delete from ${table} where workspace_id = '${id}';
        insert into ${table} select * from kept.${table} where workspace_id = '${id}'`)
    for (const table of keptTables) await owner.query(`drop table kept.${table}`)
  })
  expect(whole.ok).toBe(true)
  expect(incremental.violations.map(({ rule }) => rule)).toEqual(
    expect.arrayContaining(['verified-log', 'verified-wallets']),
  )
})

test('a member who was removed before the last verification and is back, with the audit that says so changed, is found', async () => {
  const { workspaceId } = books[0]!
  const admin = testCore.as('admin')
  await admin.members.add({ workspaceId, userId: 'eve' })
  await owner.query('create table kept.member as table member')
  await admin.members.remove({ workspaceId, userId: 'eve' })
  await admin.members.add({ workspaceId, userId: 'adam' })
  since = (await verifyAll(since)).digest!
  const { incremental } = await verifyChanged(() =>
    owner.query(`delete from member where user_id = 'eve'; insert into member select * from kept.member where user_id = 'eve';
      delete from audit where action = 'member.remove' and target = 'eve'; drop table kept.member`),
  )
  expect(incremental.violations.map(({ rule }) => rule)).toContain('verified-audit')
})

test('an old flow that was changed is found by a whole verification only', async () => {
  await operate(10)
  const old = `position = 8 and workspace_id = '${uuidFromId('workspace', books[0]!.workspaceId as never)}'`
  const { incremental, whole } = await verifyChanged(() =>
    owner.query(`update transfer set remark = 'changed' where ${old}`),
  )
  expect(incremental.ok).toBe(true)
  expect(whole.brokenRules.map(({ rule }) => rule)).toEqual(['flow-chain'])
})

test.each([
  ['removed', 'delete from verified_ledger where position > 0'],
  ['of another workspace', `update verified_ledger set workspace_id = gen_random_uuid() where position > 0`],
  ['at an earlier event', 'update verified_ledger set position = position - 1 where position > 0'],
])('where the last verification ended cannot be changed: rows %s', async (_, change) => {
  await owner.query('create table kept.verified_ledger as table verified_ledger')
  try {
    await owner.query(change)
    await expect(verifyOnly(since)).rejects.toThrow('was changed in the database')
  } finally {
    await owner.query(
      'delete from verified_ledger; insert into verified_ledger select * from kept.verified_ledger; drop table kept.verified_ledger',
    )
  }
  expect((await verifyOnly(since)).report.ok).toBe(true)
})
