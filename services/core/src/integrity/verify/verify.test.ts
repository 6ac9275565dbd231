import { createSecretKey, type KeyObject, randomBytes, randomUUID } from 'node:crypto'
import {
  countViolations,
  idFromUuid,
  ledgerRules,
  listedViolations,
  mintId,
  type Uuid,
  uuidFromId,
  type VerifyReport,
} from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import type pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, execute, query, urlOf } from '../../../../../test/setup/database.ts'
import { signRows } from '../../../../../test/setup/sign-rows.ts'
import { type System, startSystem } from '../../../../../test/setup/system.ts'
import { until } from '../../../../../test/setup/until.ts'
import { Snapshot, snapshotClient } from '../../database/snapshot.ts'
import { Findings } from './findings/findings.ts'
import { checkRows, verifyLedger } from './verify.ts'

// Core writes one ledger. Each test damages a copy of its database as the owner of the tables, without triggers and foreign
// keys, and compares the complete report, so that a false finding fails the test too.
const chainKey = randomBytes(32)
let system: System
let books: Books

type Books = {
  workspaces: Record<'books' | 'others' | 'deleted' | 'escrow', string>
  wallets: Record<
    'a' | 'b' | 'c' | 'euro' | 'yen' | 'x' | 'y' | 'externalDollar' | 'externalOfOthers' | 'payer' | 'payee',
    string
  >
  transfers: Record<
    'rent' | 'back' | 'big' | 'small' | 'last' | 'deposit' | 'withdrawal' | 'euroDeposit' | keyof Escrow['transfers'],
    string
  >
  holds: Escrow['holds']
}

type Escrow = {
  workspaceId: string
  wallets: Record<'payer' | 'payee', string>
  transfers: Record<
    'draw' | 'capture' | 'order' | 'half' | 'rest' | 'otherOrder' | 'batched' | 'batchedNext' | 'batchedLast',
    string
  >
  holds: Record<'open' | 'drawn' | 'captured' | 'released' | 'expired' | 'later', string>
}

beforeAll(async () => {
  system = await startSystem({ gateways: 0, coreEnvironment: { LEDGER_CHAIN_KEY: chainKey.toString('base64') } })
  books = await keepBooks(system)
  // A database can be copied while nobody is connected to it.
  for (const core of system.cores) await core.stop()
})
afterAll(() => system.stop())

/** Two workspaces with transfers, deposits and a withdrawal, one that was deleted with money in it, and an empty one. */
async function keepBooks({ admin, coreUrl, serviceToken, database }: System): Promise<Books> {
  const service = createCoreClient({ url: coreUrl, token: serviceToken })
  const caller = { requestId: 'test', address: '203.0.113.9' }
  const newWorkspace = async (name: string) => (await admin.workspaces.create.mutate({ name })).workspaceId
  const newWallet = async (workspaceId: string, currency: string) =>
    (await admin.wallets.create.mutate({ workspaceId, currency, name: 'Wallet' })).walletId
  const fund = async (kind: 'deposit' | 'withdraw', workspaceId: string, walletId: string, amount: string) =>
    (await admin.wallets[kind].mutate({ workspaceId, walletId, amount, caller, bizId: randomUUID() })).transferId
  const pay = async (sourceWalletId: string, targetWalletId: string, amount: string, extra = {}) => {
    const order = { sourceWalletId, targetWalletId, amount, currency: 'USD', ...extra }
    const { transferId, createdAt } = await service.transfers.create.mutate({ workspaceId: ours, caller, order })
    // No two transfers of the same millisecond, so that their times have one order.
    await until('the clock advances', () => Date.now() > createdAt.getTime())
    return transferId
  }

  const ours = await newWorkspace('Books')
  const a = await newWallet(ours, 'USD')
  const b = await newWallet(ours, 'USD')
  const c = await newWallet(ours, 'USD')
  const euro = await newWallet(ours, 'EUR')
  const yen = await newWallet(ours, 'JPY')
  const transfers = {
    deposit: await fund('deposit', ours, a, '1000.00'),
    rent: await pay(a, b, '100.50', { bizId: 'inv-1', remark: 'rent "May" \\ 五月' }),
    back: await pay(b, a, '40'),
    big: await pay(a, c, '310.25', { bizId: 'inv-3' }),
    small: await pay(b, c, '5.00'),
    withdrawal: await fund('withdraw', ours, a, '9.75'),
    last: await pay(a, b, '1'),
    euroDeposit: await fund('deposit', ours, euro, '50.0'),
  }
  await fund('deposit', ours, yen, '5000')

  const others = await newWorkspace('Others')
  const x = await newWallet(others, 'USD')
  const y = await newWallet(others, 'USD')
  await fund('deposit', others, x, '507.00')
  // Only the second withdrawal is after the limit was set.
  await fund('withdraw', others, x, '2.00')
  await admin.limits.set.mutate({ workspaceId: others, subject: { walletId: x }, currency: 'USD', perDay: '100.00' })
  await fund('withdraw', others, x, '5.00')

  const subscription = { workspaceId: others, caller, url: 'https://receiver.example/', bizId: 'hook' }
  const { webhookId } = await service.webhooks.create.mutate(subscription)
  const deletable = await service.webhooks.create.mutate({ ...subscription, bizId: 'deleted' })

  const deleted = await newWorkspace('Deleted')
  await fund('deposit', deleted, await newWallet(deleted, 'BTC'), '0.00000001')
  await newWorkspace('Empty')
  const escrow = await keepEscrow(await newWorkspace('Escrow'), system, service)

  const { workspaceId } = system
  await admin.members.add.mutate({ workspaceId, userId: 'gone' })
  const ofKey = { workspaceId, subject: { apiKey: system.apiKey }, currency: 'USD' }
  await admin.limits.set.mutate({ ...ofKey, perDay: '1000.00' })
  await keepRows(database.ownerUrl)
  await admin.limits.set.mutate({ ...ofKey, perDay: '50.00', perTransfer: '10.00' })
  await admin.members.remove.mutate({ workspaceId, userId: 'gone' })
  await admin.wallets.changeStatus.mutate({ workspaceId: ours, walletId: c, status: 'FROZEN' })
  await admin.workspaces.delete.mutate({ workspaceId: deleted, force: true })
  await admin.apiKeys.rotate.mutate({ apiKey: system.apiKey })
  await service.webhooks.rotate.mutate({ workspaceId: others, caller, webhookId })
  await service.webhooks.delete.mutate({ ...deletable, workspaceId: others, caller })
  await service.close()
  for await (const _ of await admin.ledger.checkpoint.query({}));

  const external = async (workspaceId: string) => {
    const isIt = `kind = 'EXTERNAL' and currency = 'USD' and workspace_id = '${uuidFromId('workspace', workspaceId)}'`
    const [row] = await query(database.ownerUrl, `select id from wallet where ${isIt}`)
    return idFromUuid('wallet', row!.id as Uuid<'wallet'>)
  }
  return {
    workspaces: { books: ours, others, deleted, escrow: escrow.workspaceId },
    wallets: {
      ...escrow.wallets,
      a,
      b,
      c,
      euro,
      yen,
      x,
      y,
      externalDollar: await external(ours),
      externalOfOthers: await external(others),
    },
    transfers: { ...transfers, ...escrow.transfers },
    holds: escrow.holds,
  }
}

/** Holds in every status, draws, two reversals of one transfer, and a batch. */
async function keepEscrow(workspaceId: string, { admin }: System, service: CoreClient): Promise<Escrow> {
  const caller = { requestId: 'test', address: '203.0.113.9' }
  const newWallet = async () =>
    (await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Wallet' })).walletId
  const [payer, payee] = [await newWallet(), await newWallet()]
  await admin.wallets.deposit.mutate({ workspaceId, walletId: payer, amount: '1000.00', caller, bizId: randomUUID() })
  const reserve = async (bizId: string, amount: string, expiresInSeconds = 3600) => {
    const body = { walletId: payer, amount, currency: 'USD', expiresInSeconds, bizId }
    const created = await service.holds.create.mutate({ workspaceId, caller, hold: body })
    await until('the clock advances', () => Date.now() > created.createdAt.getTime())
    return created
  }
  const order = { sourceWalletId: payer, targetWalletId: payee, currency: 'USD' }
  const pay = async (amount: string, extra = {}) => {
    const input = { workspaceId, caller, order: { ...order, amount, ...extra } }
    const { transferId, createdAt } = await service.transfers.create.mutate(input)
    await until('the clock advances', () => Date.now() > createdAt.getTime())
    return transferId
  }
  const reverse = async (reversesTransferId: string, amount: string, bizId: string) => {
    const reversal = { reversesTransferId, amount, currency: 'USD', bizId }
    return (await service.transfers.reverse.mutate({ workspaceId, caller, reversal })).transferId
  }

  const open = await reserve('open', '10.00')
  const drawn = await reserve('drawn', '20.00')
  const captured = await reserve('captured', '8.00')
  const released = await reserve('released', '3.00')
  const draw = await pay('5.00', { holdId: drawn.holdId, holdRemainder: 'KEEP' })
  const capture = await pay('6.00', { holdId: captured.holdId })
  await service.holds.release.mutate({ workspaceId, caller, holdId: released.holdId })
  const paid = await pay('30.00')
  const half = await reverse(paid, '15.00', 'half')
  const rest = await reverse(paid, '15.00', 'rest')
  const otherOrder = await pay('40.00')
  const items = ['1.00', '2.00', '3.00'].map((amount, at) => ({ ...order, amount, bizId: `item-${at}` }))
  const { transfers } = await service.transfers.batch.mutate({ workspaceId, caller, batch: { transfers: items } })
  const [batched, batchedNext, batchedLast] = transfers.map(({ transferId }) => transferId) as [string, string, string]
  // Last, so that nothing else is written between its creation and its expiry, which a sweep may write.
  const expired = await reserve('expired', '4.00', 1)
  await until('the hold expires', () => Date.now() > expired.expiresAt.getTime())
  // Writes that the other one has expired, unless a sweep has.
  const later = await reserve('later', '1.00')
  return {
    workspaceId,
    wallets: { payer, payee },
    transfers: { draw, capture, order: paid, half, rest, otherOrder, batched, batchedNext, batchedLast },
    holds: {
      open: open.holdId,
      drawn: drawn.holdId,
      captured: captured.holdId,
      released: released.holdId,
      expired: expired.holdId,
      later: later.holdId,
    },
  }
}

/** Copies the rows that later actions change, so that a test can put genuine earlier rows back. */
async function keepRows(ownerUrl: string): Promise<void> {
  await execute(ownerUrl, 'create schema kept')
  for (const table of ['api_key', 'hold', 'ledger', 'member', 'spending_limit', 'wallet', 'webhook', 'workspace'])
    await execute(ownerUrl, `create table kept.${table} as table ${table}`)
}

/** Resets rows to genuine earlier ones, as the owner of the tables can. */
const reset = (table: string, where = 'true') =>
  `delete from ${table} where ${where}; insert into ${table} select * from kept.${table} where ${where};`

async function verify(
  serviceUrl: string,
  { key = createSecretKey(chainKey), workspaceId = null }: { key?: KeyObject; workspaceId?: string | null } = {},
): Promise<VerifyReport> {
  for await (const event of verifyLedger({
    databaseUrl: serviceUrl,
    chainKey: key,
    writers: ['postgres'],
    workspaceId: workspaceId === null ? null : uuidFromId('workspace', workspaceId),
    checkpoint: null,
  }))
    if (event.kind === 'result') return event.report
  throw new Error('the verification gave no result')
}

/** Checks the rows only: the catalog differs on purpose. */
async function verifyRows(service: pg.Client): Promise<Findings> {
  const snapshot = await Snapshot.begin(service)
  const findings = new Findings()
  const counts = { workspaces: 0, wallets: 0, transfers: 0, flows: 0, holds: 0, journalEntries: 0 }
  for await (const _ of checkRows(snapshot, createSecretKey(chainKey), null, findings, null, counts));
  await service.query('rollback')
  return findings
}

type Copy = { ownerUrl: string; serviceUrl: string }

/** Runs a test on a copy of the database. */
async function inCopy<Result>(use: (copy: Copy) => Promise<Result>): Promise<Result> {
  const { ownerUrl, serviceUrl } = system.database
  const adminUrl = urlOf(ownerUrl, 'postgres')
  const name = `copy_${randomUUID().replaceAll('-', '')}`
  await execute(adminUrl, `create database ${name} template ${new URL(ownerUrl).pathname.slice(1)}`)
  try {
    return await use({ ownerUrl: urlOf(ownerUrl, name), serviceUrl: urlOf(serviceUrl, name) })
  } finally {
    await execute(adminUrl, `drop database ${name} with (force)`)
  }
}

async function sign(ownerUrl: string, table: NonNullable<Damage['signed']>): Promise<void> {
  const client = await connect(ownerUrl)
  try {
    await client.query('set session_replication_role = replica')
    await signRows(client, chainKey.toString('base64'), table)
  } finally {
    await client.end()
  }
}

const damage = (ownerUrl: string, sql: string) => execute(ownerUrl, `set session_replication_role = replica; ${sql}`)

/** Violations with the names of this file: "flow-chain b#2", "batch rent", "journal-chain books@3", "workspace-sum books USD". */
function named({ violations }: VerifyReport): string[] {
  const names = new Map(
    Object.entries({
      ...books.workspaces,
      ...books.wallets,
      ...books.transfers,
      ...books.holds,
      orphan,
      stray,
      strange,
    }).map(([name, id]) => [id, name]),
  )
  const nameOf = (id: unknown) => names.get(id as string) ?? id
  return violations.map(({ rule, ids }) => {
    const { workspaceId, walletId, transferId, holdId, sequence, position, currency } = ids
    const { object, action, userId, apiKey, webhookId, limit } = ids
    if (object) return `${rule} ${object}`
    if (action ?? userId ?? apiKey) return `${rule} ${action ?? userId ?? 'key'}`
    if (webhookId) return `${rule} webhook`
    if (limit && !currency)
      return `${rule} ${`${limit}`.startsWith(system.apiKey) ? 'key' : nameOf(`${limit}`.split(' ')[0])}`
    if (walletId) return `${rule} ${nameOf(walletId)}${sequence === undefined ? '' : `#${sequence}`}`
    if (holdId) return `${rule} ${nameOf(holdId)}`
    if (transferId) return `${rule} ${nameOf(transferId)}`
    if (position) return `${rule} ${nameOf(workspaceId)}@${position}`
    return [rule, nameOf(workspaceId), currency].filter(each => each !== undefined).join(' ')
  })
}

function inOrderOfRules(violations: string[]): string[] {
  const rules = Object.keys(ledgerRules)
  const placeOf = (violation: string) => rules.indexOf(violation.split(' ')[0]!)
  return violations.toSorted((a, b) => placeOf(a) - placeOf(b))
}

// SQL literals.
const wallet = (name: keyof Books['wallets']) => `'${uuidFromId('wallet', books.wallets[name])}'`
const transfer = (name: keyof Books['transfers']) => `'${uuidFromId('transfer', books.transfers[name])}'`
const hold = (name: keyof Books['holds']) => `'${uuidFromId('hold', books.holds[name])}'`
const workspace = (name: keyof Books['workspaces']) => `'${uuidFromId('workspace', books.workspaces[name])}'`
/** The limit of a wallet; the other one is that of a key. */
const ofWallet = `(subject like 'wallet:%')`
/** Changes columns of one transfer. */
const change = (name: keyof Books['transfers'], columns: string) =>
  `update transfer set ${columns} where id = ${transfer(name)};`
const changeHold = (name: keyof Books['holds'], columns: string) =>
  `update hold set ${columns} where id = ${hold(name)};`
/** A condition for one journal entry. */
const entry = (name: keyof Books['workspaces'], position: number) =>
  `workspace_id = ${workspace(name)} and position = ${position}`
/** The unique indexes of transfers other than the primary key, and bizIds. */
const uniqueness = ['position', 'source', 'target'].map(name => `transfer_${name}`)

test('an undamaged ledger has no violations, as a whole and for one workspace', () =>
  inCopy(async ({ serviceUrl }) => {
    const sound = {
      ok: true,
      violations: [],
      brokenRules: [],
      notes: [],
    }
    // The workspace of every test system has three wallets and three deposits.
    const all = { workspaces: 6, wallets: 21, transfers: 26, flows: 52, holds: 6, journalEntries: 22 }
    expect(await verify(serviceUrl)).toEqual({ ...sound, ...all })
    const one = await verify(serviceUrl, { workspaceId: books.workspaces.books })
    const ofOne = { workspaces: 1, wallets: 8, transfers: 9, flows: 18, holds: 0, journalEntries: 6 }
    expect(one).toEqual({ ...sound, ...ofOne })
  }))

/** The IDs of a transfer, a wallet and a hold that core did not create. */
const orphan = mintId('transfer')
const stray = mintId('wallet')
const strange = mintId('hold')

/** `signed`: the table whose rows get genuine MACs afterwards, so that only other rules can report the damage. */
type Damage = {
  what: string
  sql: () => string
  signed?: 'hold' | 'spending_limit' | 'wallet' | 'webhook'
  expected: string[]
}

const damages: Damage[] = [
  {
    what: 'an amount changed',
    sql: () => change('back', 'amount = 41'),
    expected: [
      'flow-balance a#3',
      'flow-chain a#3',
      'wallet-balance a',
      'flow-balance b#2',
      'flow-chain b#2',
      'wallet-balance b',
    ],
  },
  {
    what: 'an amount changed, with all balances adjusted',
    sql: () => `
      ${change('last', 'amount = 2, source_balance = source_balance - 1, target_balance = target_balance + 1')}
      update wallet set balance = balance - 1 where id = ${wallet('a')};
      update wallet set balance = balance + 1 where id = ${wallet('b')}`,
    expected: ['flow-chain a#6', 'wallet-mac a', 'flow-chain b#4', 'wallet-mac b'],
  },
  {
    what: 'the balance after an entry changed',
    sql: () => change('back', 'source_balance = 61.50'),
    expected: ['flow-balance b#2', 'flow-chain b#2'],
  },
  {
    what: 'the balance after the last entry of a wallet changed',
    sql: () => change('last', 'target_balance = 61.50'),
    expected: ['flow-balance b#4', 'flow-chain b#4', 'wallet-balance b'],
  },
  {
    what: "a wallet's balance changed",
    sql: () => `update wallet set balance = 9999.00 where id = ${wallet('b')}`,
    expected: ['wallet-balance b', 'wallet-mac b'],
  },
  {
    what: 'a remark changed',
    sql: () => `update transfer set remark = 'gift' where id = ${transfer('rent')}`,
    expected: ['flow-chain a#2', 'flow-chain b#1'],
  },
  {
    what: 'the last transfer deleted',
    sql: () => `delete from transfer where id = ${transfer('last')}`,
    expected: [
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'wallet-head a',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'ledger-order-count books',
      'log-position euroDeposit',
    ],
  },
  {
    what: 'a transfer in the middle deleted',
    sql: () => `delete from transfer where id = ${transfer('back')}`,
    expected: [
      'flow-sequence a#4',
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'flow-sequence b#3',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'ledger-order-count books',
      'log-position big',
    ],
  },
  {
    what: 'the first transfer deleted',
    sql: () => `delete from transfer where id = ${transfer('rent')}`,
    expected: [
      'flow-sequence a#3',
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'flow-sequence b#2',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'ledger-order-count books',
      'log-position back',
    ],
  },
  {
    what: 'two entries of a wallet swapped',
    sql: () => change('back', 'target_sequence = 4') + change('big', 'source_sequence = 3'),
    expected: [
      'flow-order-count a#3',
      'flow-balance a#3',
      'flow-chain a#3',
      'flow-order-count a#4',
      'flow-time a#4',
      'flow-balance a#4',
      'flow-chain a#4',
      'flow-balance a#5',
      'flow-chain a#5',
      'flow-chain b#2',
      'flow-chain c#1',
    ],
  },
  {
    what: 'the sequence of a source changed',
    sql: () => change('back', 'source_sequence = 9'),
    expected: [
      'flow-chain a#3',
      'flow-sequence b#3',
      'flow-sequence b#9',
      'flow-time b#9',
      'wallet-balance b',
      'wallet-head b',
    ],
  },
  {
    what: 'the sequence of a target changed',
    sql: () => change('back', 'target_sequence = 9'),
    expected: [
      'flow-sequence a#4',
      'flow-sequence a#9',
      'flow-time a#9',
      'wallet-balance a',
      'wallet-head a',
      'flow-chain b#2',
    ],
  },
  {
    what: 'another source',
    sql: () => change('last', `source_wallet_id = ${wallet('c')}`),
    expected: [
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'wallet-head a',
      'flow-chain b#4',
      'flow-sequence c#6',
      'wallet-sequence c',
      'wallet-order-count c',
      'wallet-balance c',
      'wallet-head c',
    ],
  },
  {
    what: 'another target',
    sql: () => change('last', `target_wallet_id = ${wallet('c')}`),
    expected: [
      'flow-chain a#6',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'flow-sequence c#4',
      'wallet-sequence c',
      'wallet-order-count c',
      'wallet-balance c',
      'wallet-head c',
    ],
  },
  {
    what: 'a transfer from a wallet to itself',
    sql: () => `
      alter table transfer drop constraint transfer_check;
      ${change('last', 'target_wallet_id = source_wallet_id, target_sequence = 7')}`,
    expected: [
      'database-object constraint public.transfer.transfer_check',
      'flow-chain a#6',
      'flow-order-count a#7',
      'flow-balance a#7',
      'flow-chain a#7',
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'wallet-head a',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'transfer-wallets last',
    ],
  },
  {
    what: 'a transfer reversed',
    sql: () =>
      change(
        'last',
        ['wallet_id', 'sequence', 'order_count', 'balance', 'mac']
          .map(column => `source_${column} = target_${column}, target_${column} = source_${column}`)
          .join(', '),
      ),
    expected: [
      'flow-balance a#6',
      'flow-chain a#6',
      'wallet-balance a',
      'flow-balance b#4',
      'flow-chain b#4',
      'wallet-balance b',
    ],
  },
  {
    what: 'a transfer copied to the end',
    sql: () => `
      insert into transfer
      select (jsonb_populate_record(t, '{
        "id": "${uuidFromId('transfer', orphan)}", "position": 16, "order_count": 6,
        "source_sequence": 5, "source_order_count": 5, "target_sequence": 3, "target_order_count": 3}')).*
      from transfer t where id = ${transfer('small')}`,
    expected: [
      'flow-time b#5',
      'flow-balance b#5',
      'flow-chain b#5',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'flow-balance c#3',
      'flow-chain c#3',
      'wallet-sequence c',
      'wallet-order-count c',
      'wallet-balance c',
      'ledger-order-count books',
      'transfer-time orphan',
      'ledger-position books',
    ],
  },
  {
    what: 'a duplicate of a transfer',
    sql: () => `
      alter table transfer drop constraint transfer_pkey;
      drop index ${uniqueness.join(', ')};
      insert into transfer select * from transfer where id = ${transfer('back')}`,
    expected: [
      'database-object constraint public.transfer.transfer_pkey',
      'database-object index public.transfer_pkey',
      'database-object index public.transfer_position',
      'database-object index public.transfer_source',
      'database-object index public.transfer_target',
      'flow-sequence a#3',
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'flow-sequence b#2',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'ledger-order-count books',
      'log-position back',
    ],
  },
  {
    what: 'the order count of an entry changed',
    sql: () => change('back', 'source_order_count = 7'),
    expected: ['flow-order-count b#2', 'flow-chain b#2'],
  },
  {
    what: 'a deposit counted as an order',
    sql: () => change('deposit', 'target_order_count = 1'),
    expected: ['flow-order-count a#1', 'flow-chain a#1'],
  },
  {
    what: "a wallet's order_count changed",
    sql: () => `update wallet set order_count = 3 where id = ${wallet('b')}`,
    expected: ['wallet-order-count b', 'wallet-mac b'],
  },
  {
    what: "a wallet's sequence changed",
    sql: () => `update wallet set sequence = 5 where id = ${wallet('b')}`,
    expected: ['wallet-sequence b', 'wallet-mac b'],
  },
  {
    what: "a wallet's head changed",
    sql: () => `update wallet set head = '\\x01' where id = ${wallet('b')}`,
    expected: ['wallet-head b', 'wallet-mac b'],
  },
  {
    what: 'a MAC changed',
    sql: () => change('back', `source_mac = '\\x01' || sha256('x')`),
    expected: ['flow-chain b#2'],
  },
  {
    what: 'a MAC replaced by that of another entry',
    sql: () => change('back', `source_mac = (select target_mac from transfer where id = ${transfer('rent')})`),
    expected: ['flow-chain b#2'],
  },
  {
    what: "the MACs of a transfer's entries swapped",
    sql: () => change('back', 'source_mac = target_mac, target_mac = source_mac'),
    expected: ['flow-chain a#3', 'flow-chain b#2'],
  },
  {
    what: 'a MAC of an unknown format',
    sql: () => change('back', `source_mac = '\\x02' || substr(source_mac, 2)`),
    expected: ['flow-format b#2'],
  },
  {
    what: 'a MAC cut short',
    sql: () => change('back', 'source_mac = substr(source_mac, 1, 20)'),
    expected: ['flow-format b#2'],
  },
  {
    what: "a transfer's position changed",
    sql: () => change('small', 'position = 99'),
    expected: [
      'flow-chain b#3',
      'flow-chain c#2',
      'log-position withdrawal',
      'log-position small',
      'transfer-time small',
      'ledger-position books',
    ],
  },
  {
    what: "a transfer's order_count changed",
    sql: () => change('back', 'order_count = 9'),
    expected: ['flow-chain a#3', 'flow-chain b#2', 'transfer-order-count back'],
  },
  {
    what: "a ledger's order_count changed",
    sql: () => `update ledger set order_count = 9 where workspace_id = ${workspace('books')}`,
    expected: ['ledger-mac books', 'ledger-order-count books'],
  },
  {
    what: "a ledger's wallet_count changed",
    sql: () => `update ledger set wallet_count = 9 where workspace_id = ${workspace('books')}`,
    expected: ['ledger-mac books', 'ledger-wallet-count books'],
  },
  {
    what: "a wallet's number changed",
    sql: () => `update wallet set number = 9 where id = ${wallet('yen')}`,
    expected: ['wallet-mac yen', 'wallet-number yen'],
  },
  {
    what: 'the time of a transfer changed',
    sql: () => change('back', `created_at = created_at - interval '1 hour'`),
    expected: ['flow-time a#3', 'flow-chain a#3', 'flow-time b#2', 'flow-chain b#2', 'transfer-time back'],
  },
  {
    what: "a ledger's last_posted_at changed",
    sql: () =>
      `update ledger set last_posted_at = last_posted_at - interval '1 hour' where workspace_id = ${workspace('others')}`,
    expected: ['ledger-time externalOfOthers', 'ledger-time x', 'ledger-mac others', 'ledger-time others'],
  },
  {
    what: "a customer's wallet below zero",
    sql: () => change('back', 'source_balance = -5'),
    expected: ['flow-balance b#2', 'flow-floor b#2', 'flow-chain b#2'],
  },
  {
    what: "a transfer's currency changed",
    sql: () => `update transfer set currency = 'EUR' where id = ${transfer('back')}`,
    expected: ['flow-currency a#3', 'flow-chain a#3', 'flow-currency b#2', 'flow-chain b#2'],
  },
  {
    what: "a wallet's currency changed",
    sql: () => `update wallet set currency = 'EUR' where id = ${wallet('c')}`,
    expected: [
      'flow-currency c#1',
      'flow-currency c#2',
      'wallet-mac c',
      'workspace-sum books USD',
      'workspace-sum books EUR',
      'wallet-audit c',
    ],
  },
  {
    what: 'an unknown currency',
    sql: () => `update wallet set currency = 'DUCATS' where id = ${wallet('y')}`,
    expected: ['flow-currency y', 'wallet-mac y', 'wallet-audit y', 'wallet-external others DUCATS'],
  },
  {
    what: 'a transfer moved to another workspace',
    sql: () => change('last', `workspace_id = ${workspace('others')}`),
    expected: [
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'wallet-head a',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'flow-wallet a#6',
      'flow-sequence a#6',
      'flow-wallet b#4',
      'flow-sequence b#4',
      'ledger-order-count books',
      'ledger-order-count others',
      'log-position euroDeposit',
      'log-position last',
      'transfer-time last',
      'ledger-position others',
    ],
  },
  {
    what: 'a deposit that core did not post',
    sql: () => `
      insert into transfer
      select (jsonb_populate_record(t, '{
        "id": "${uuidFromId('transfer', orphan)}", "type": "DEPOSIT", "position": 16,
        "source_sequence": 77, "source_order_count": 0, "target_sequence": 77, "target_order_count": 0}')).*
      from transfer t where id = ${transfer('last')}`,
    expected: [
      'flow-sequence a#77',
      'transfer-type a#77',
      'wallet-sequence a',
      'wallet-balance a',
      'flow-sequence b#77',
      'wallet-sequence b',
      'wallet-balance b',
      'transfer-audit orphan',
      'transfer-time orphan',
      'ledger-position books',
    ],
  },
  {
    what: 'a wallet deleted',
    sql: () => `delete from wallet where id = ${wallet('c')}`,
    expected: [
      'flow-wallet c#1',
      'workspace-sum books USD',
      'workspace-sum books',
      'audit-target c',
      'wallet-number euro',
      'ledger-wallet-count books',
      'wallet-journal c',
    ],
  },
  {
    what: 'an empty wallet deleted',
    sql: () => `delete from wallet where id = ${wallet('y')}`,
    expected: ['audit-target y', 'ledger-wallet-count others', 'wallet-journal y'],
  },
  {
    what: 'a duplicate bizId',
    sql: () => `drop index transfer_biz_id; update transfer set biz_id = 'inv-1' where id = ${transfer('big')}`,
    expected: [
      'database-object index public.transfer_biz_id',
      'flow-chain a#4',
      'flow-chain c#1',
      'transfer-biz-id rent',
    ],
  },
  {
    what: 'a second EXTERNAL wallet',
    sql: () => `
      drop index wallet_external;
      insert into wallet (workspace_id, id, kind, name, currency, status, created_at, updated_at, revision, mac)
      select workspace_id, '${uuidFromId('wallet', stray)}', kind, name, currency, status, created_at, updated_at,
        revision, mac
      from wallet where id = ${wallet('externalDollar')}`,
    expected: ['database-object index public.wallet_external', 'wallet-mac stray', 'wallet-external books USD'],
  },
  {
    what: 'an amount with too many decimals',
    sql: () => change('back', 'amount = 40.000'),
    expected: ['flow-amount a#3', 'flow-chain a#3', 'flow-amount b#2', 'flow-chain b#2'],
  },
  {
    what: 'an amount of zero',
    sql: () => `alter table transfer drop constraint transfer_amount_check; ${change('last', 'amount = 0')}`,
    expected: [
      'database-object constraint public.transfer.transfer_amount_check',
      'flow-amount a#6',
      'flow-balance a#6',
      'flow-chain a#6',
      'wallet-balance a',
      'flow-amount b#4',
      'flow-balance b#4',
      'flow-chain b#4',
      'wallet-balance b',
    ],
  },
  {
    what: 'a withdrawal turned into a deposit',
    sql: () => `update transfer set type = 'DEPOSIT' where id = ${transfer('withdrawal')}`,
    expected: [
      'transfer-type externalDollar#2',
      'flow-chain externalDollar#2',
      'transfer-type a#5',
      'flow-chain a#5',
      'transfer-audit withdrawal',
    ],
  },
  {
    what: "a wallet's name changed",
    sql: () => `update wallet set name = 'Savings' where id = ${wallet('b')}`,
    expected: ['wallet-mac b', 'wallet-audit b'],
  },
  {
    what: 'a wallet unfrozen',
    sql: () => `update wallet set status = 'ACTIVE', frozen_by = null where id = ${wallet('c')}`,
    expected: ['wallet-mac c', 'wallet-audit c', 'wallet-journal c'],
  },
  {
    what: 'two wallets with swapped numbers',
    sql: () => `
      update wallet set number = 100 where id = ${wallet('a')};
      update wallet set number = 1 where id = ${wallet('b')};
      update wallet set number = 2 where id = ${wallet('a')}`,
    expected: ['wallet-mac a', 'wallet-mac b', 'wallet-time a'],
  },
  {
    what: 'two transfers with swapped positions',
    sql: () =>
      change('rent', 'position = 100') +
      change('back', 'position = 7, order_count = 1') +
      change('rent', 'position = 8, order_count = 2'),
    expected: ['flow-chain a#2', 'flow-chain a#3', 'flow-chain b#1', 'flow-chain b#2', 'transfer-time rent'],
  },
  {
    what: 'a deleted workspace restored, and another one renamed',
    sql: () =>
      `update workspace set deleted_at = null where name = 'Deleted'; update workspace set name = 'X' where id = ${workspace('books')}`,
    expected: ['workspace-mac books', 'workspace-mac deleted', 'workspace-audit books', 'workspace-audit deleted'],
  },
  {
    what: 'a closed ledger opened',
    sql: () => `update ledger set status = 'OPEN' where status = 'CLOSED'`,
    expected: ['ledger-mac deleted', 'workspace-audit deleted'],
  },
  {
    what: 'a removed member restored',
    sql: () => `update member set removed_at = null where user_id = 'gone'`,
    expected: ['member-mac gone', 'member-audit gone'],
  },
  {
    what: 'a member that core did not add',
    sql: () => `
      insert into member select workspace_id, 'mallory', created_at, null, 1, mac from member where user_id = 'owner'`,
    expected: ['member-mac mallory', 'member-audit mallory'],
  },
  {
    what: 'a key with more scopes',
    sql: () => `update api_key set scopes = array_append(scopes, 'wallet:write')`,
    expected: ['key-mac key', 'key-audit key'],
  },
  {
    what: 'the revision of a key changed',
    sql: () => `update api_key set revision = revision + 1`,
    expected: ['key-mac key'],
  },
  {
    what: 'an action changed in the audit',
    sql: () => `update audit set actor = 'admin:nobody' where action = 'wallet.freeze'`,
    expected: ['audit-chain wallet.freeze'],
  },
  {
    what: 'the time of an action changed',
    sql: () => `update audit set at = at - interval '1 day' where action = 'wallet.freeze'`,
    expected: ['audit-chain wallet.freeze'],
  },
  {
    what: 'an action deleted from the audit',
    sql: () => `delete from audit where action = 'wallet.withdraw' and workspace_id = ${workspace('books')}`,
    expected: ['audit-position wallet.deposit', 'transfer-audit withdrawal'],
  },
  {
    what: 'the last action deleted from the audit',
    sql: () => `delete from audit where action = 'wallet.freeze'`,
    expected: ['wallet-audit c', 'audit-head books'],
  },
  {
    what: 'an action on no workspace changed',
    sql: () => `update audit set target = 'x' where workspace_id is null`,
    expected: ['audit-chain ledger.checkpoint'],
  },
  {
    what: 'two actions with swapped IDs',
    sql: () => `
      alter table audit alter id drop identity;
      update audit set id = -1 where action = 'wallet.withdraw' and workspace_id = ${workspace('books')};
      update audit set id = 9999 where action = 'wallet.freeze'`,
    expected: [
      'database-object column public.audit.id',
      'database-object relation public.audit_id_seq',
      'audit-position wallet.withdraw',
    ],
  },
  {
    what: 'a frozen wallet reset to its genuine earlier row',
    sql: () => reset('wallet', `id = ${wallet('c')}`),
    expected: ['wallet-audit c', 'wallet-journal c'],
  },
  {
    what: 'a removed member reset to the genuine earlier row',
    sql: () => reset('member', `user_id = 'gone'`),
    expected: ['member-audit gone'],
  },
  {
    what: 'a key reset to its genuine row before a rotation',
    sql: () => reset('api_key'),
    expected: ['key-audit key'],
  },
  {
    what: 'a deleted workspace reset to its genuine earlier rows',
    sql: () =>
      reset('workspace', `id = ${workspace('deleted')}`) + reset('ledger', `workspace_id = ${workspace('deleted')}`),
    expected: ['workspace-audit deleted'],
  },
  {
    what: 'the ledger of a deleted workspace reset to its genuine earlier row',
    sql: () => reset('ledger', `workspace_id = ${workspace('deleted')}`),
    expected: ['workspace-audit deleted'],
  },
  {
    what: 'a key deleted',
    sql: () => 'delete from api_key',
    expected: ['audit-target key'],
  },
  {
    what: 'a member deleted',
    sql: () => `delete from member where user_id = 'gone'`,
    expected: ['audit-target gone'],
  },
  {
    what: 'a key that core did not create',
    sql: () => `update kept.api_key set id = gen_random_uuid(); insert into api_key select * from kept.api_key`,
    expected: ['key-mac key', 'key-audit key'],
  },
  {
    what: 'a deposit deleted',
    sql: () => `delete from transfer where id = ${transfer('deposit')}`,
    expected: [
      'flow-sequence externalDollar#2',
      'wallet-sequence externalDollar',
      'wallet-balance externalDollar',
      'flow-sequence a#2',
      'wallet-sequence a',
      'wallet-balance a',
      'audit-target deposit',
      'log-position rent',
    ],
  },
  {
    what: 'another amount of a deposit in the audit',
    sql: () => `
      update audit set after = replace(after::text, '1000.00', '1.00')::json
      where target = '${books.wallets.a}' and action = 'wallet.deposit'`,
    expected: ['audit-chain wallet.deposit', 'transfer-audit deposit'],
  },
  {
    what: 'a ledger deleted',
    sql: () => `delete from ledger where workspace_id = ${workspace('others')}`,
    expected: ['workspace-ledger others'],
  },
  {
    what: 'a workspace deleted',
    sql: () => `delete from workspace where id = ${workspace('others')}`,
    expected: ['audit-target others', 'workspace-ledger others'],
  },
  {
    what: 'a journal entry deleted',
    sql: () => `delete from journal where ${entry('escrow', 4)}`,
    expected: ['journal-chain escrow@5', 'log-position escrow@5', 'hold-life open'],
  },
  {
    what: 'the last journal entry deleted',
    sql: () => `delete from journal where ${entry('escrow', 20)}`,
    expected: ['ledger-position escrow', 'journal-head escrow', 'hold-life later'],
  },
  {
    what: 'a journal entry that core did not write',
    sql: () => `
      insert into journal select (jsonb_populate_record(j, '{"position": 16}')).* from journal j where ${entry('books', 15)}`,
    expected: ['journal-chain books@16', 'ledger-position books'],
  },
  {
    what: 'the actor of a journal entry changed',
    sql: () => `update journal set actor = 'nobody' where ${entry('escrow', 10)}`,
    expected: ['journal-chain escrow@10'],
  },
  {
    what: 'the MAC of a journal entry changed',
    sql: () => `update journal set mac = sha256('x') where ${entry('escrow', 10)}`,
    expected: ['journal-chain escrow@10'],
  },
  {
    what: 'the MAC of the last journal entry changed',
    sql: () => `update journal set mac = sha256('x') where ${entry('books', 15)}`,
    expected: ['journal-chain books@15', 'journal-head books'],
  },
  {
    what: 'the time of a journal entry changed',
    sql: () => `update journal set created_at = created_at - interval '1 hour' where ${entry('books', 15)}`,
    expected: ['journal-chain books@15', 'journal-time books@15'],
  },
  {
    what: 'the order_count of a journal entry changed',
    sql: () => `update journal set order_count = 9 where ${entry('escrow', 10)}`,
    expected: ['journal-chain escrow@10', 'journal-order-count escrow@10'],
  },
  {
    what: "a ledger's position changed",
    sql: () => `update ledger set position = 99 where workspace_id = ${workspace('books')}`,
    expected: ['ledger-mac books', 'ledger-position books'],
  },
  {
    what: "a ledger's journal_head changed",
    sql: () => `update ledger set journal_head = '' where workspace_id = ${workspace('books')}`,
    expected: ['ledger-mac books', 'journal-head books'],
  },
  {
    what: "a ledger's hold_count changed",
    sql: () => `update ledger set hold_count = 9 where workspace_id = ${workspace('escrow')}`,
    expected: ['ledger-mac escrow', 'ledger-hold-count escrow'],
  },
  {
    what: 'the URL of a webhook changed',
    sql: () => `update webhook set url = 'https://attacker.example/' where biz_id = 'hook'`,
    expected: ['webhook-mac webhook', 'webhook-audit webhook'],
  },
  {
    what: 'the URL of a webhook changed, and signed with the stolen chain key',
    sql: () => `update webhook set url = 'https://attacker.example/' where biz_id = 'hook'`,
    signed: 'webhook',
    expected: ['webhook-audit webhook'],
  },
  {
    what: 'the secret of a webhook changed',
    sql: () => `update webhook set previous_secret = secret where biz_id = 'hook'`,
    expected: ['webhook-mac webhook'],
  },
  {
    what: 'a webhook reset to its row before a rotation',
    sql: () => reset('webhook', `biz_id = 'hook'`),
    expected: ['webhook-audit webhook'],
  },
  {
    what: 'a deleted webhook restored',
    sql: () => reset('webhook', `biz_id = 'deleted'`),
    expected: ['webhook-audit webhook'],
  },
  {
    what: 'a webhook deleted from the table',
    sql: () => `delete from webhook where biz_id = 'hook'`,
    expected: ['audit-target webhook'],
  },
  {
    what: 'a webhook ahead of the log',
    sql: () => 'update webhook set position = 1000',
    expected: ['webhook-position webhook'],
  },
  {
    what: 'a webhook whose next attempt is far away',
    sql: () => `update webhook set next_attempt_at = now() + interval '1 day' where biz_id = 'hook'`,
    expected: ['webhook-attempt webhook'],
  },
  {
    what: 'a webhook whose lease has no end',
    sql: () => `update webhook set leased_until = '9999-12-31' where biz_id = 'hook'`,
    expected: ['webhook-attempt webhook'],
  },
  {
    what: "a ledger's limit_count changed",
    sql: () => `update ledger set limit_count = 0 where workspace_id = ${workspace('others')}`,
    expected: ['ledger-mac others', 'ledger-limit-count others'],
  },
  {
    what: 'a limit raised',
    sql: () => `update spending_limit set per_day = 1000 where ${ofWallet}`,
    expected: ['limit-mac others USD', 'limit-audit x'],
  },
  {
    what: 'a limit raised, and signed with the stolen chain key',
    sql: () => `update spending_limit set per_day = 1000 where ${ofWallet}`,
    signed: 'spending_limit',
    expected: ['limit-audit x'],
  },
  {
    what: 'a limit reset to its genuine earlier row',
    sql: () => reset('spending_limit', `not ${ofWallet}`),
    expected: ['limit-audit key'],
  },
  {
    what: 'a limit deleted',
    sql: () => `delete from spending_limit where ${ofWallet}`,
    expected: ['audit-target x', 'ledger-limit-count others'],
  },
  {
    what: 'a limit moved to another wallet',
    sql: () => `update spending_limit set subject = 'wallet:' || ${wallet('y')} where ${ofWallet}`,
    expected: ['limit-mac others USD', 'audit-target x', 'limit-audit y'],
  },
  {
    what: 'less counted by a limit than was spent',
    sql: () => `update spending_limit set spent = 4 where ${ofWallet}`,
    signed: 'spending_limit',
    expected: ['limit-spent others USD'],
  },
  {
    what: 'counted by a limit on an earlier day',
    sql: () => `update spending_limit set day = day - 1 where ${ofWallet}`,
    signed: 'spending_limit',
    expected: ['limit-spent others USD'],
  },
  {
    what: 'counted by a limit since an earlier transfer',
    sql: () => `update spending_limit set counted_from = counted_from - 1 where ${ofWallet}`,
    signed: 'spending_limit',
    expected: ['limit-audit x'],
  },
  {
    what: "a wallet's hold_count changed",
    sql: () => `update wallet set hold_count = 9 where id = ${wallet('payer')}`,
    expected: ['wallet-mac payer', 'wallet-hold-count payer'],
  },
  {
    what: 'the time at which a wallet was created changed',
    sql: () => `update wallet set created_at = created_at - interval '1 ms' where id = ${wallet('a')}`,
    signed: 'wallet',
    expected: ['wallet-journal a'],
  },
  {
    what: 'less held than the holds reserve',
    sql: () => `update wallet set held = 1 where id = ${wallet('payer')}`,
    signed: 'wallet',
    expected: ['hold-sum payer'],
  },
  {
    what: 'held_until after the first expiry',
    sql: () => `update wallet set held_until = held_until + interval '1 year' where id = ${wallet('payer')}`,
    signed: 'wallet',
    expected: ['hold-sum payer'],
  },
  {
    what: 'more held than the balance',
    sql: () => `
      alter table wallet drop constraint wallet_check4;
      update wallet set held = balance + 1 where id = ${wallet('payer')}`,
    signed: 'wallet',
    expected: ['database-object constraint public.wallet.wallet_check4', 'hold-sum payer', 'wallet-held payer'],
  },
  {
    what: 'the remark of a hold changed',
    sql: () => changeHold('open', `remark = 'gift'`),
    expected: ['hold-mac open'],
  },
  {
    what: "a hold's number changed",
    sql: () => changeHold('later', 'number = 9'),
    expected: ['hold-mac later', 'hold-number later'],
  },
  {
    what: "a hold's number among those of its wallet changed",
    sql: () => changeHold('later', 'wallet_number = 9'),
    signed: 'hold',
    expected: ['hold-number later'],
  },
  {
    what: 'two holds with swapped numbers',
    sql: () =>
      changeHold('open', 'number = 100') + changeHold('drawn', 'number = 1') + changeHold('open', 'number = 2'),
    signed: 'hold',
    expected: ['hold-time open'],
  },
  {
    what: 'more reserved than the hold was created with',
    sql: () => `
      ${changeHold('open', 'amount = 11.00, remaining = 11.00')}
      update wallet set held = held + 1 where id = ${wallet('payer')}`,
    signed: 'hold',
    expected: ['wallet-mac payer', 'hold-life open'],
  },
  {
    what: 'a released hold opened again',
    sql: () => `
      ${changeHold('released', `status = 'OPEN', remaining = 3.00`)}
      update wallet set held = held + 3 where id = ${wallet('payer')}`,
    signed: 'hold',
    expected: ['wallet-mac payer', 'hold-life released'],
  },
  {
    what: 'an open hold released without an event',
    sql: () => `
      ${changeHold('open', `status = 'RELEASED', remaining = 0`)}
      update wallet set held = held - 10 where id = ${wallet('payer')}`,
    signed: 'hold',
    expected: ['wallet-mac payer', 'hold-life open'],
  },
  {
    what: 'an expired hold shown as released',
    sql: () => changeHold('expired', `status = 'RELEASED'`),
    signed: 'hold',
    expected: ['hold-life expired'],
  },
  {
    what: 'the time of the end of a hold changed',
    sql: () => changeHold('released', `updated_at = updated_at + interval '1 s'`),
    signed: 'hold',
    expected: ['hold-life released'],
  },
  {
    what: 'a hold that ended twice',
    sql: () => `
      insert into journal select (jsonb_populate_record(j, jsonb_build_object(
          'position', 21, 'order_count', l.order_count, 'created_at', l.last_posted_at))).*
      from journal j join ledger l using (workspace_id) where j.${entry('escrow', 10).replace('position', 'j.position')}`,
    expected: ['journal-chain escrow@21', 'ledger-position escrow', 'journal-head escrow', 'hold-life released'],
  },
  {
    what: 'a hold that expired before its draw',
    sql: () => changeHold('captured', `expires_at = created_at + interval '1 ms'`),
    signed: 'hold',
    expected: ['hold-captured capture'],
  },
  {
    what: 'another captured amount',
    sql: () => changeHold('captured', 'captured = 7.00'),
    signed: 'hold',
    expected: ['hold-captured captured'],
  },
  {
    what: 'a draw detached from its hold',
    sql: () => change('draw', 'hold_id = null, hold_remaining = null'),
    expected: ['flow-chain payer#2', 'flow-chain payee#1', 'hold-captured drawn', 'hold-life drawn'],
  },
  {
    what: 'a transfer that draws more than the hold has',
    sql: () => change('otherOrder', `hold_id = ${hold('open')}, hold_remaining = 0`),
    expected: [
      'flow-chain payer#7',
      'flow-chain payee#6',
      'hold-captured open',
      'hold-captured otherOrder',
      'hold-life open',
    ],
  },
  {
    what: 'a draw from another wallet than that of the hold',
    sql: () => `
      update wallet set hold_count = hold_count - 1 where id = ${wallet('payer')};
      update wallet set hold_count = 1 where id = ${wallet('payee')};
      ${changeHold('captured', `wallet_id = ${wallet('payee')}, wallet_number = 1`)}
      update hold set wallet_number = wallet_number - 1
      where workspace_id = ${workspace('escrow')} and wallet_number > 3 and wallet_id = ${wallet('payer')}`,
    signed: 'hold',
    expected: ['wallet-mac payer', 'wallet-mac payee', 'hold-captured capture', 'hold-life captured'],
  },
  {
    what: 'the rest of a draw changed',
    sql: () => change('draw', 'hold_remaining = 14.00'),
    expected: ['flow-chain payer#2', 'flow-chain payee#1', 'hold-captured draw', 'hold-life drawn'],
  },
  {
    what: 'a hold deleted',
    sql: () => `delete from hold where id = ${hold('later')}`,
    expected: ['ledger-hold-count escrow', 'wallet-hold-count payer', 'hold-sum payer', 'hold-life later'],
  },
  {
    what: 'a hold that core did not create',
    sql: () => `
      insert into hold select (jsonb_populate_record(h, '{
        "id": "${uuidFromId('hold', strange)}", "biz_id": "strange", "number": 7, "wallet_number": 7}')).*
      from hold h where id = ${hold('later')}`,
    expected: [
      'hold-mac strange',
      'ledger-hold-count escrow',
      'wallet-hold-count payer',
      'hold-sum payer',
      'hold-life strange',
    ],
  },
  {
    what: 'the total of a reversal changed',
    sql: () => change('rest', 'reversed_total = 15.00'),
    expected: ['flow-chain payer#6', 'flow-chain payee#5', 'reversal rest'],
  },
  {
    what: 'a reversal of a later transfer',
    sql: () => change('rest', `reverses_id = ${transfer('otherOrder')}, reversed_total = 15.00`),
    expected: ['flow-chain payer#6', 'flow-chain payee#5', 'reversal rest'],
  },
  {
    what: 'a reversal in the direction of its original',
    sql: () => change('rest', `reverses_id = ${transfer('half')}, reversed_total = 15.00`),
    expected: ['flow-chain payer#6', 'flow-chain payee#5', 'reversal rest'],
  },
  {
    what: 'a reversal of more than its original',
    sql: () => change('rest', `reverses_id = ${transfer('draw')}, reversed_total = 15.00`),
    expected: ['flow-chain payer#6', 'flow-chain payee#5', 'reversal rest'],
  },
  {
    what: 'a transfer in the middle of a batch removed from it',
    sql: () => change('batchedNext', 'batch_id = null'),
    expected: ['flow-chain payer#9', 'flow-chain payee#8', 'batch batchedLast'],
  },
  {
    what: 'the first transfer of a batch removed from it',
    sql: () => change('batched', 'batch_id = null'),
    expected: ['flow-chain payer#8', 'flow-chain payee#7', 'batch batchedNext'],
  },
  {
    what: 'a transfer added to a batch',
    sql: () => change('otherOrder', `batch_id = ${transfer('batched')}`),
    expected: ['flow-chain payer#7', 'flow-chain payee#6', 'batch otherOrder', 'batch batched'],
  },
]

describe('each damage is reported with its rule and place, and nothing else is', () => {
  test.each(damages)('$what', ({ sql, signed, expected }) =>
    inCopy(async ({ ownerUrl, serviceUrl }) => {
      await damage(ownerUrl, sql())
      if (signed) await sign(ownerUrl, signed)
      const report = await verify(serviceUrl)
      expect(report.ok).toBe(false)
      expect(named(report)).toEqual(inOrderOfRules(expected))
    }),
  )
})

test('a sequence used for a payment and for a receipt of one wallet is reported', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    // No index forbids it: each covers one side.
    await damage(ownerUrl, change('small', 'source_sequence = 1'))
    // Which of the two entries is read first is not defined.
    const expected = ['flow-sequence b#1', 'flow-sequence b#4', 'flow-chain c#2']
    expect(named(await verify(serviceUrl))).toEqual(expect.arrayContaining(expected))
  }))

test('no column value stops the verification, and every change of a covered column is reported', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    // Hundreds of verifications: a new connection for each would take most of the time.
    const [owner, service] = [await connect(ownerUrl), snapshotClient(serviceUrl, 'test')]
    await service.connect()
    const rows = {
      transfer: `id = ${transfer('back')}`,
      wallet: `id = ${wallet('b')}`,
      ledger: `workspace_id = ${workspace('books')}`,
      hold: `id = ${hold('drawn')}`,
      journal: entry('escrow', 10),
      workspace: `id = ${workspace('books')}`,
      member: `user_id = 'gone'`,
      api_key: 'true',
      audit: `action = 'wallet.withdraw'`,
      spending_limit: `workspace_id = ${workspace('others')}`,
      webhook: `biz_id = 'hook'`,
    }
    // Columns that no MAC covers.
    const uncovered = [
      'api_key.last_used_at',
      'api_key.access_revision',
      'webhook.generation',
      'webhook.leased_generation',
      'webhook.failures',
      'webhook.failing_since',
      'webhook.last_status',
      'webhook.last_error',
      'webhook.last_attempt_at',
    ]
    await withoutConstraints(ownerUrl, Object.keys(rows))
    try {
      const unnoticed: string[] = []
      for (const [table, isIt] of Object.entries(rows))
        for (const { column, type } of await columnsOf(ownerUrl, table))
          for (const value of oddValues[type as keyof typeof oddValues].slice(hasManyRules(table) ? 0 : -1)) {
            const changed = await owner.query(
              `update ${table} set ${column} = ${value}
               where ${isIt} and ${column}${type === 'json' ? '::text' : ''} is distinct from ${value} returning 1`,
            )
            if (changed.rowCount === 0) continue
            const { ok } = await verifyRows(service)
            if (ok !== uncovered.includes(`${table}.${column}`)) unnoticed.push(`${table}.${column} = ${value}`)
            await owner.query(`delete from ${table}; insert into ${table} table sound_${table}`)
          }
      expect(unnoticed).toEqual([])
      expect(await verifyRows(service)).toMatchObject({ ok: true })
    } finally {
      await Promise.all([owner.end(), service.end()])
    }
  }))

/** For the other tables only the MAC is checked, so one value is enough. */
const hasManyRules = (table: string) =>
  ['transfer', 'wallet', 'ledger', 'hold', 'journal', 'spending_limit'].includes(table)

/** Values that a column may hold once its constraints are gone. */
const oddValues = {
  ARRAY: ['null', `'{}'`, `'{odd}'`],
  bigint: ['null', '0', '-1', '9223372036854775807'],
  bytea: ['null', `'\\x'::bytea`, `'\\x00'::bytea`],
  date: ['null', `'infinity'`, `'-infinity'`, `'0044-03-15 BC'`, `'12000-01-01'`],
  integer: ['null', '0', '2147483647'],
  json: ['null', `'null'`, `'{"odd": 1}'`],
  smallint: ['null', '0', '32767'],
  numeric: ['null', '0', '-1', `'NaN'`, `'Infinity'`, `'-Infinity'`, '1e-30', '1e40'],
  text: ['null', `''`, `'odd "\\ 😀'`],
  'timestamp with time zone': ['null', `'infinity'`, `'-infinity'`, `'0044-03-15 BC'`, `'12000-01-01'`],
  uuid: ['null', `'ffffffff-ffff-ffff-ffff-ffffffffffff'`, `'00000000-0000-0000-0000-000000000000'`],
}

/** Replaces tables with copies without constraints, indexes and triggers, and keeps another copy of each. */
async function withoutConstraints(ownerUrl: string, tables: string[]): Promise<void> {
  for (const table of tables)
    await execute(
      ownerUrl,
      `
      create table sound_${table} as table ${table};
      drop table ${table} cascade;
      create table ${table} as table sound_${table}`,
    )
  await execute(ownerUrl, 'grant select on all tables in schema public to wallet_service')
}

async function columnsOf(ownerUrl: string, table: string): Promise<{ column: string; type: string }[]> {
  const sql = `select column_name as "column", data_type as type from information_schema.columns
    where table_schema = 'public' and table_name = '${table}'`
  return (await query(ownerUrl, sql)) as { column: string; type: string }[]
}

test('reports a policy that hides rows from everybody but the verification, and tables that it cannot read', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await execute(
      ownerUrl,
      `alter table transfer enable row level security;
       create policy hidden on transfer for select to wallet_service
         using (current_setting('application_name') = 'core verify' or position < 9)`,
    )
    const report = await verify(serviceUrl)
    expect(report.ok).toBe(false)
    expect(report.violations.map(({ rule, ids, message }) => `${rule} ${ids.object ?? message}`)).toEqual([
      'database-object policy public.transfer.hidden',
      'database-object relation public.transfer',
      'database-read query would be affected by row-level security policy for table "transfer"',
    ])
  }))

/**
 * Operators on two different types, which PostgreSQL prefers to converting one side to the type of the other. Each raises an
 * exception, so that no statement can use one unnoticed.
 */
const intruders = `
  do $do$
  declare
    types constant regtype[] := '{oid,regclass,regnamespace,regtype,name,text,varchar,"\\"char\\"",smallint,integer,bigint,numeric,
      uuid,bytea,date,timestamptz}';
    place integer := 0;
    symbol text;
    leftmost regtype;
    rightmost regtype;
  begin
    foreach symbol in array '{=,<>,<,>,<=,>=,||,+,-}'::text[] loop
      foreach leftmost in array types loop
        foreach rightmost in array types loop
          continue when leftmost::text = rightmost::text or to_regoperator(format('pg_catalog.%s(%s,%s)', symbol, leftmost, rightmost)) is not null;
          place := place + 1;
          execute format($$create function pg_catalog.intruder_%s(%s, %s) returns %s language plpgsql as
            'begin raise exception ''%s of %s and %s''; end'$$, place, leftmost, rightmost,
            case symbol when '||' then 'text' when '+' then 'numeric' when '-' then 'numeric' else 'boolean' end, symbol, leftmost, rightmost);
          execute format('create operator pg_catalog.%s (leftarg = %s, rightarg = %s, function = pg_catalog.intruder_%s)',
            symbol, leftmost, rightmost, place);
        end loop;
      end loop;
    end loop;
  end $do$`

test('no operator that was added to pg_catalog is called, and none hides a violation', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await damage(ownerUrl, `${change('small', 'order_count = order_count + 1')}; update hold set number = number + 100`)
    const before = (await verify(serviceUrl)).violations
    expect(before.map(({ rule }) => rule)).toEqual(expect.arrayContaining(['transfer-order-count', 'hold-number']))
    const [{ added }] = (await query(
      ownerUrl,
      `${intruders}; select count(*)::int as added from pg_operator where oprcode::text like 'intruder_%'`,
    )) as [{ added: number }]
    expect(added).toBeGreaterThan(1_000)
    const { brokenRules, violations } = await verify(serviceUrl)
    expect(violations.filter(({ rule }) => rule !== 'database-object')).toEqual(before)
    // Each is reported with its function.
    expect(brokenRules[0]).toEqual({ rule: 'database-object', violations: 2 * added })
  }))

test('rows that the migration step has not written are reported', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await damage(
      ownerUrl,
      `update currency set decimals = 3 where code = 'USD'; insert into currency values ('XXX', 2);
       insert into mikro_orm_migrations (name) values ('later'); update chain_key set fingerprint = ''`,
    )
    const { violations } = await verify(serviceUrl)
    expect(violations.map(({ rule, ids, message }) => `${rule} ${ids.object}: ${message}`)).toEqual([
      'database-row table currency: it lacks USD 2',
      'database-row table currency: it has USD 3, XXX 2, which the service did not write',
      'database-row table mikro_orm_migrations: it has later, which the service did not write',
      expect.stringMatching(/^database-row table chain_key: it lacks \\x[0-9a-f]{64}$/),
      'database-row table chain_key: it has \\x, which the service did not write',
    ])
  }))

test('reports a view in place of a table, although its rows are correct', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await execute(
      ownerUrl,
      `alter table transfer rename to transfer_kept;
       create view transfer as select * from transfer_kept;
       grant select on transfer to wallet_service`,
    )
    const { ok, violations } = await verify(serviceUrl)
    expect(ok).toBe(false)
    expect(violations.every(({ rule }) => rule.startsWith('database-'))).toBe(true)
  }))

test('the verification reads the table, not the view of entries', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await execute(
      ownerUrl,
      `alter view flow rename to flow_kept; alter table transfer rename to transfer_kept;
       create table transfer as table transfer_kept;
       create view flow with (security_invoker = true) as select * from flow_kept;
       grant select on transfer to wallet_service`,
    )
    const service = snapshotClient(serviceUrl, 'test')
    await service.connect()
    expect(await verifyRows(service)).toMatchObject({ ok: true })
    await execute(ownerUrl, change('back', 'source_balance = 61.50'))
    expect(await verifyRows(service)).toMatchObject({ ok: false })
    await service.end()
  }))

test('of each rule the first violations are listed, and all are counted', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    const [{ transfers }] = (await query(ownerUrl, 'select count(*)::int as transfers from transfer')) as [
      { transfers: number },
    ]
    await damage(
      ownerUrl,
      `update transfer set amount = amount + 1, source_balance = -1, target_balance = -1, source_order_count = 5,
         target_order_count = 5, currency = 'EUR', created_at = now() - position * interval '1 s',
         order_count = order_count + 100 + position`,
    )
    const { brokenRules, violations } = await verify(serviceUrl)
    // Each flow of each transfer; rules that PostgreSQL and core compute.
    expect(brokenRules).toContainEqual({ rule: 'flow-chain', violations: 2 * transfers })
    expect(brokenRules).toContainEqual({ rule: 'transfer-order-count', violations: transfers })
    expect(2 * transfers).toBeGreaterThan(2 * listedViolations)
    for (const { rule, violations: found } of brokenRules)
      expect(violations.filter(each => each.rule === rule)).toHaveLength(Math.min(found, listedViolations))
  }))

test('with another chain key the report suggests that the key is wrong', () =>
  inCopy(async ({ serviceUrl }) => {
    const report = await verify(serviceUrl, { key: createSecretKey(randomBytes(32)) })
    expect(countViolations(report.brokenRules)).toBeGreaterThan(28)
    const ofFlows = report.violations.filter(({ rule }) => rule === 'flow-chain')
    expect(ofFlows.length).toBeGreaterThan(0)
    for (const { message } of ofFlows) expect(message).toContain('were they posted with another LEDGER_CHAIN_KEY?')
    // Only rules about MACs, and the fingerprint of the key.
    for (const { rule } of report.violations) expect(rule).toMatch(/-(chain|mac)$|^database-row$/)
  }))
