import { uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient, repairLedger, verifyLedger } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { execute, query } from '../../../../../test/setup/database.ts'
import { type System, startSystem } from '../../../../../test/setup/system.ts'

// Somebody writes past the service, as the owner of the tables. Each test has a workspace of its own.
let system: System
let service: CoreClient
beforeAll(async () => {
  system = await startSystem({ gateways: 0 })
  service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
})
afterAll(async () => {
  await service.close()
  await system.stop()
})

const caller = { requestId: 'test' }
type Books = { workspaceId: string; a: string; b: string; empty: string; pay(): Promise<unknown> }

/** Three wallets: the first two have money, and the first has paid the second. */
async function newBooks(): Promise<Books> {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Test' })
  const newWallet = async () =>
    (await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Wallet' })).walletId
  const [a, b, empty] = [await newWallet(), await newWallet(), await newWallet()]
  for (const walletId of [a, b]) await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '100.00', caller })
  const order = { sourceWalletId: a, targetWalletId: b, amount: '1.00', currency: 'USD' }
  const pay = () => service.transfers.create.mutate({ workspaceId, caller, order })
  await pay()
  return { workspaceId, a, b, empty, pay }
}

const damage = (sql: string) => execute(system.database.ownerUrl, `set session_replication_role = replica; ${sql}`)
const isIn = ({ workspaceId }: Books) => `workspace_id = '${uuidFromId('workspace', workspaceId)}'`
const isWallet = (walletId: string) => `id = '${uuidFromId('wallet', walletId)}'`
const halt = (books: Books) => `update ledger set status = 'HALTED', halt_reason = 'test' where ${isIn(books)};`
const repair = ({ workspaceId }: Books, dryRun = false) => repairLedger(system.admin, { workspaceId, dryRun })
const rowsOf = (books: Books) =>
  query(
    system.database.ownerUrl,
    `select id, balance, sequence, order_count, head::text, null as time from wallet where ${isIn(books)}
     union all
     select workspace_id, null, wallet_count, order_count, null, last_posted_at from ledger where ${isIn(books)}
     order by 1`,
  )

test('rows and counters are made from the entries again; a dry run shows that and changes nothing', async () => {
  const books = await newBooks()
  const sound = await rowsOf(books)
  await damage(`
    update wallet set balance = 7, sequence = 9, order_count = 4, head = '\\x01' where ${isWallet(books.a)};
    update wallet set balance = 100, sequence = 1, order_count = 0, head = (
      select mac from flow where wallet_${isWallet(books.b)} and sequence = 1) where ${isWallet(books.b)};
    update wallet set balance = 5000 where ${isWallet(books.empty)};
    update ledger set wallet_count = 9, order_count = 0, last_posted_at = last_posted_at - interval '1 day'
      where ${isIn(books)};
    ${halt(books)}`)
  const damaged = await rowsOf(books)

  const shown = await repair(books, true)
  expect(shown).toMatchObject({ repaired: false, reopened: false, moreChanges: 0, report: { ok: false } })
  expect(shown.changes.map(({ target }) => target)).toEqual([books.a, books.b, books.empty, books.workspaceId])
  expect(shown.changes[1]).toMatchObject({
    before: { balance: '100', sequence: 1, orderCount: 0 },
    after: { balance: '101.00', sequence: 2, orderCount: 1 },
  })
  expect(await rowsOf(books)).toEqual(damaged)

  const done = await repair(books)
  expect(done).toMatchObject({ repaired: true, reopened: true, changes: shown.changes, report: { ok: true } })
  expect((await rowsOf(books)).map(row => ({ ...row, balance: row.balance && Number(row.balance) }))).toEqual(
    sound.map(row => ({ ...row, balance: row.balance && Number(row.balance) })),
  )
  const { entries } = await system.admin.audit.list.query({ workspaceId: books.workspaceId, act: 'ledger.repair' })
  expect(entries.map(({ actor, target, before, after }) => ({ actor, target, before, after })).toReversed()).toEqual(
    shown.changes.map(change => ({ actor: 'admin:a', ...change })),
  )
  await books.pay()
  expect((await verifyLedger(system.admin, books)).ok).toBe(true)
})

/** What no row can be made from. */
const damages: [string, (books: Books) => string, string][] = [
  [
    'a flow that was changed',
    ({ a }) => `update flow set amount = 2 where wallet_${isWallet(a)} and sequence = 2`,
    'flow-chain',
  ],
  ['a flow that is gone', ({ a }) => `delete from flow where wallet_${isWallet(a)} and sequence = 2`, 'transfer-flows'],
  ['a transfer that is gone', books => `delete from transfer where ${isIn(books)} and number = 1`, 'flow-transfer'],
  ['a wallet that is gone', ({ empty }) => `delete from wallet where ${isWallet(empty)}`, 'wallet-number'],
]

test.each(damages)('%s: nothing is repaired, and what is damaged is named', async (what, damageOf, rule) => {
  const books = await newBooks()
  const also = what === 'a wallet that is gone' ? `update wallet set number = 9 where ${isWallet(books.b)};` : ''
  await damage(`
    ${damageOf(books)};
    ${also}
    update wallet set balance = 5000 where ${isWallet(books.b)};
    ${halt(books)}`)
  const damaged = await rowsOf(books)
  const result = await repair(books)
  expect(result).toMatchObject({ repaired: false, reopened: false, changes: [] })
  expect(result.report.brokenRules).toContain(rule)
  expect(await rowsOf(books)).toEqual(damaged)
})

test('a workspace that takes postings is not repaired', async () => {
  const books = await newBooks()
  await expect(repair(books)).rejects.toThrow(`${books.workspaceId} is not halted: it takes postings.`)
})

test("the service's role can set a wallet to what its last flow says, and to nothing else", async () => {
  const { a } = await newBooks()
  const asService = (sql: string) => execute(system.database.serviceUrl, sql)
  const refused = 'this update of wallet is refused: a balance changes with a flow'
  const update = 'update wallet set revision = revision + 1,'
  await expect(asService(`${update} balance = 5000 where ${isWallet(a)}`)).rejects.toThrow(refused)
  await expect(asService(`${update} head = '\\x01' where ${isWallet(a)}`)).rejects.toThrow(refused)
  // What an earlier flow says, and what no flow says.
  const earlier = `(balance, sequence, order_count, head) = (
    select balance_after, 1, 0, mac from flow where wallet_${isWallet(a)} and sequence = 1)`
  await expect(asService(`${update} ${earlier} where ${isWallet(a)}`)).rejects.toThrow(refused)
  const nothing = `balance = 0, sequence = 0, order_count = 0, head = ''`
  await expect(asService(`${update} ${nothing} where ${isWallet(a)}`)).rejects.toThrow(refused)
})
