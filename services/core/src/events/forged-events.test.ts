import { randomUUID } from 'node:crypto'
import { type EventType, eventsOf, mintId, uuidFromId } from '@workspace-wallet/contract'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect } from '../../../../test/setup/database.ts'

/**
 * Events that core did not write, or that were modified since, are not answered. Somebody with the rights of the owner of the tables
 * changes the log of a workspace. Each test has a workspace of its own.
 */

let testCore: TestCore
let owner: pg.Client
let donor: Books
beforeAll(async () => {
  testCore = await openTestCore()
  owner = await connect(testCore.database.ownerUrl)
  // Changes rows that triggers protect.
  await owner.query('set session_replication_role = replica')
  donor = await newBooks()
})
afterAll(async () => {
  await owner.end()
  await testCore.close()
})

const caller = { requestId: 'test' }
const admin = () => testCore.as('admin')
const service = () => testCore.as('service')

/** The events of `newBooks`, by position from 1. */
const log: EventType[] = [
  'wallet.created',
  'wallet.deposited',
  'wallet.created',
  'transfer.completed',
  'hold.created',
  'transfer.completed',
  'hold.released',
  'transfer.completed',
  'wallet.frozen',
]
type Books = { workspaceId: string; a: string; b: string; holdId: string }

async function newBooks(): Promise<Books> {
  const { workspaceId } = await admin().workspaces.create({ name: 'Test' })
  const on = { workspaceId, caller }
  const create = async (name: string) => {
    const wallet = await service().wallets.create({ ...on, currency: 'USD', name, bizId: name })
    return wallet.walletId
  }
  const a = await create('a')
  await admin().wallets.deposit({ workspaceId, walletId: a, amount: '100.00', bizId: randomUUID() })
  const b = await create('b')
  const pay = (amount: string) =>
    service().transfers.create({ ...on, order: { sourceWalletId: a, targetWalletId: b, amount, currency: 'USD' } })
  await pay('1.00')
  const terms = { walletId: a, amount: '5.00', currency: 'USD', expiresInSeconds: 3600, bizId: 'room' }
  const { holdId } = await service().holds.create({ ...on, hold: terms })
  await pay('2.00')
  await service().holds.release({ ...on, holdId })
  await pay('3.00')
  await admin().wallets.changeStatus({ workspaceId, walletId: b, status: 'FROZEN' })
  const page = await service().events.read({ ...on, after: 0 })
  expect(eventsOf(page).map(({ type }) => type)).toEqual(log)
  return { workspaceId, a, b, holdId }
}

const isIn = ({ workspaceId }: Books) => `workspace_id = '${uuidFromId('workspace', workspaceId)}'`
const uuidOf = ({ a }: Books) => uuidFromId('wallet', a)
const transferAt = (position: number, books: Books) => `${isIn(books)} and position = ${position}`

const read = async (
  { workspaceId }: Books,
  { after = 0, ...rest }: { after?: number; size?: number; types?: EventType[] } = {},
) => {
  const page = await service().events.read({ workspaceId, caller, after, ...rest })
  return { ...page, content: eventsOf(page) }
}
const halted = async ({ workspaceId }: Books) =>
  (await admin().ledger.halted()).ledgers.find(each => each.workspaceId === workspaceId)

/** The page is not answered, core says why, and the workspace takes no postings. */
async function expectRefused(books: Books, asked: Parameters<typeof read>[1], reason: RegExp): Promise<void> {
  const before = await modifiedRows()
  await expect(read(books, asked)).rejects.toMatchObject({
    cause: { code: 'S002', details: { retryAfterSeconds: 60 } },
  })
  expect(await halted(books)).toMatchObject({ reason: expect.stringMatching(reason) })
  expect(await modifiedRows()).toBe(before + 1)
  // Again, now that the workspace is halted.
  await expect(read(books, asked)).rejects.toMatchObject({ cause: { code: 'S002' } })
  const { workspaceId, a: walletId } = books
  const deposit = admin().wallets.deposit({ workspaceId, walletId, amount: '1.00', bizId: randomUUID() })
  await expect(deposit).rejects.toMatchObject({ cause: { code: 'S002' } })
}

async function modifiedRows(): Promise<number> {
  const text = await testCore.core.metrics.registry.getSingleMetricAsString('core_modified_rows_total')
  return [...text.matchAll(/^core_modified_rows_total\{.*\} (\d+)$/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  )
}

const transferFault = /^transfer trf_\S+, or the one before it in its chain, was written outside the service$/
const journalFault = /^event evt_\S+, or the one before it in its chain, was written outside the service$/
const removed = (position: number) => new RegExp(`^the event at position ${position} was removed outside the service$`)

/** What is changed, the position of the first event that can no longer be shown, and the reason. */
const damages: [what: string, sql: (books: Books) => string, position: number, reason: RegExp][] = [
  ['the amount of a transfer', on => `update transfer set amount = 9 where ${transferAt(4, on)}`, 4, transferFault],
  [
    'the reference of a transfer',
    on => `update transfer set reference = 'x' where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  [
    'the actor of a transfer',
    on => `update transfer set actor = 'admin:x' where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  [
    'the time of a transfer',
    on => `update transfer set created_at = created_at + interval '1 ms' where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  [
    'the last time that a row may have',
    on => `update transfer set created_at = '9999-12-31T23:59:59.999Z' where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  ['the type of a transfer', on => `update transfer set type = 'DEPOSIT' where ${transferAt(4, on)}`, 4, transferFault],
  [
    'a balance of the source',
    on => `update transfer set source_balance = 1 where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  [
    'a balance of the target',
    on => `update transfer set target_balance = 1 where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  [
    'a count of the target',
    on => `update transfer set target_order_count = 9 where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  [
    'entries that were swapped, with their MACs',
    on =>
      `update transfer set source_balance = target_balance, target_balance = source_balance, source_mac = target_mac,
         target_mac = source_mac, source_order_count = target_order_count, target_order_count = source_order_count
       where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  [
    'the direction of a transfer',
    on =>
      `update transfer set source_wallet_id = target_wallet_id, target_wallet_id = source_wallet_id,
         source_sequence = target_sequence, target_sequence = source_sequence where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  [
    'two transfers that changed places',
    on =>
      `update transfer set position = 110 - position where ${isIn(on)} and position in (4, 6);
       update transfer set position = position - 100 where ${isIn(on)} and position > 100`,
    4,
    transferFault,
  ],
  [
    'an earlier transfer in the place of a later one',
    on =>
      `delete from transfer where ${transferAt(8, on)};
       insert into transfer select (t).* from (
         select jsonb_populate_record(t, '{"position": 8}'::jsonb || jsonb_build_object('id', gen_random_uuid(),
           'source_sequence', 4, 'target_sequence', 3)) t from transfer t where ${transferAt(6, on)}) _`,
    8,
    transferFault,
  ],
  [
    'a transfer of another workspace',
    on =>
      `delete from transfer where ${transferAt(4, on)};
       insert into transfer select (t).* from (
         select jsonb_populate_record(t, jsonb_build_object('workspace_id', '${uuidFromId('workspace', on.workspaceId)}'::uuid)) t
         from transfer t where ${transferAt(4, donor)}) _`,
    4,
    transferFault,
  ],
  [
    'a transfer of other wallets',
    on => `update transfer set source_wallet_id = '${uuidOf(donor)}' where ${transferAt(4, on)}`,
    4,
    transferFault,
  ],
  ['a transfer that was removed', on => `delete from transfer where ${transferAt(4, on)}`, 4, removed(4)],
  ['an event of a hold', on => `update journal set remaining = 4 where ${transferAt(5, on)}`, 5, journalFault],
  [
    'the type of an event',
    on => `update journal set type = 'hold.expired' where ${transferAt(5, on)}`,
    5,
    journalFault,
  ],
  ['who changed a wallet', on => `update journal set actor = 'key:x' where ${transferAt(9, on)}`, 9, journalFault],
  [
    'an event of another workspace',
    on =>
      `delete from journal where ${transferAt(9, on)};
       insert into journal select (j).* from (
         select jsonb_populate_record(j, jsonb_build_object('workspace_id', '${uuidFromId('workspace', on.workspaceId)}'::uuid)) j
         from journal j where ${transferAt(9, donor)}) _`,
    9,
    journalFault,
  ],
  ['an event that was removed', on => `delete from journal where ${transferAt(7, on)}`, 7, removed(7)],
  [
    'the terms of a hold',
    on => `update hold set amount = 6, captured = 0 where ${isIn(on)}`,
    5,
    /^the row of hold hld_\S+ was modified outside the service$/,
  ],
  ['a hold that was removed', on => `delete from hold where ${isIn(on)}`, 5, /^the row of hold hld_\S+ was modified/],
  [
    'the bizId of a wallet',
    on => `update wallet set biz_id = 'x' where ${isIn(on)} and id = '${uuidFromId('wallet', on.b)}'`,
    3,
    /^the row of wallet wal_\S+ was modified outside the service$/,
  ],
]

describe('a page is not answered, and its workspace is halted, after a change of', () => {
  test.each(damages)('%s', async (_, sql, position, reason) => {
    const books = await newBooks()
    const whole = await read(books)
    for (const statement of sql(books).split(';\n')) await owner.query(statement)
    // What comes before is still answered.
    if (position > 1)
      expect(await read(books, { size: position - 1 })).toMatchObject({ content: whole.content.slice(0, position - 1) })
    expect(await halted(books)).toBeUndefined()
    await expectRefused(books, {}, reason)
  })

  test.each<[string, (books: Books) => string]>([
    ['raised', on => `update ledger set position = position + 100 where ${isIn(on)}`],
    ['lowered', on => `update ledger set position = position - 1 where ${isIn(on)}`],
  ])('its end, which was %s', async (_, sql) => {
    const books = await newBooks()
    await owner.query(sql(books))
    await expectRefused(books, { types: ['wallet.closed'] }, /^the row of its ledger was modified outside the service$/)
  })

  test('the event at its cursor', async () => {
    for (const types of [[], ['wallet.frozen' as const]]) {
      const books = await newBooks()
      await owner.query(`update transfer set id = gen_random_uuid() where ${transferAt(8, books)}`)
      await expectRefused(books, { after: 8, types }, transferFault)
    }
  })

  test('the event at the end of a filtered page', async () => {
    const books = await newBooks()
    await owner.query(`update journal set id = gen_random_uuid() where ${transferAt(9, books)}`)
    await expectRefused(books, { types: ['wallet.deposited'] }, journalFault)
  })

  test('the MAC before it, which is not in the page', async () => {
    for (const [sql, after, types, reason] of [
      ["update transfer set source_mac = '\\x01' where position = 4", 5, [], transferFault],
      ["update transfer set target_mac = '\\x01' where position = 2", 3, ['transfer.completed'], transferFault],
      ["update journal set mac = '\\x01' where position = 3", 4, [], journalFault],
      ["update journal set mac = '\\x01' where position = 5", 6, ['hold.released'], journalFault],
      ['delete from journal where position = 5', 6, ['hold.released'], journalFault],
    ] as const) {
      const books = await newBooks()
      await owner.query(`${sql} and ${isIn(books)}`)
      await expectRefused(books, { after, types: [...types] }, reason)
    }
  })
})

test('pages of a sound log are answered, from any cursor and with any filter', async () => {
  const books = await newBooks()
  const { content } = await read(books)
  for (let after = 0; after <= log.length; after++)
    for (const types of [[], ...new Set(log)].map(type => [type].flat())) {
      const page = await read(books, { after, types })
      const expected = content.filter(
        ({ position, type }) => position > after && (types.length === 0 || types.includes(type)),
      )
      expect(page.content).toEqual(expected)
    }
  expect(await halted(books)).toBeUndefined()
})

test('a halted workspace still answers events that are sound', async () => {
  const books = await newBooks()
  const { content } = await read(books)
  await owner.query(`update transfer set remark = 'x' where ${transferAt(8, books)}`)
  await expectRefused(books, { after: 6 }, transferFault)
  expect((await read(books, { size: 7 })).content).toEqual(content.slice(0, 7))
})

test('other workspaces are not affected', async () => {
  const [books, other] = [await newBooks(), await newBooks()]
  await owner.query(`update transfer set remark = 'x' where ${transferAt(4, books)}`)
  await expectRefused(books, {}, transferFault)
  expect((await read(other)).content).toHaveLength(log.length)
  expect(await halted(other)).toBeUndefined()
})

test('E001 for a cursor after the end, and GA2032 for an unknown workspace, halt nothing', async () => {
  const books = await newBooks()
  await expect(read(books, { after: 10 })).rejects.toMatchObject({ cause: { code: 'E001' } })
  await expect(read({ ...books, workspaceId: mintId('workspace') })).rejects.toMatchObject({
    cause: { code: 'GA2032' },
  })
  expect(await halted(books)).toBeUndefined()
})
