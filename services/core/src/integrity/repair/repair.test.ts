import { randomUUID } from 'node:crypto'
import { uuidFromId } from '@workspace-wallet/contract'
import {
  type CoreClient,
  createCoreClient,
  reopenLedger,
  repairLedger,
  verifyLedger,
} from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { connect, execute, query } from '../../../../../test/setup/database.ts'
import { signRows } from '../../../../../test/setup/sign-rows.ts'
import { type System, startSystem } from '../../../../../test/setup/system.ts'
import { until } from '../../../../../test/setup/until.ts'

// The owner of the tables modifies rows. Each test has its own workspace.
let system: System
let service: CoreClient
beforeAll(async () => {
  system = await startSystem({ waitsForLocks: true, gateways: 0 })
  service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
})
afterAll(async () => {
  await service.close()
  await system.stop()
})

const caller = { requestId: 'test' }
type Books = { workspaceId: string; a: string; b: string; empty: string; pay(): Promise<unknown> }

/** Three wallets: the first two have money, and the first one has two open holds and paid the second one. */
async function newBooks(): Promise<Books> {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Test' })
  const newWallet = async () =>
    (await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Wallet' })).walletId
  const [a, b, empty] = [await newWallet(), await newWallet(), await newWallet()]
  for (const walletId of [a, b])
    await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '100.00', caller, bizId: randomUUID() })
  const order = { sourceWalletId: a, targetWalletId: b, amount: '1.00', currency: 'USD' }
  const pay = () => service.transfers.create.mutate({ workspaceId, caller, order })
  for (const expiresInSeconds of [3600, 7200]) {
    const hold = { walletId: a, amount: '5.00', currency: 'USD', expiresInSeconds, bizId: `hold-${expiresInSeconds}` }
    await service.holds.create.mutate({ workspaceId, caller, hold })
  }
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
    `select id, balance, sequence, order_count, head::text, held_until as time, hold_count, held::float, 0 as position
     from wallet where ${isIn(books)}
     union all
     select workspace_id, null, wallet_count, order_count, journal_head::text, last_posted_at, hold_count, 0, position
     from ledger where ${isIn(books)}
     order by 1`,
  )

test('repair recomputes rows and counters from entries, holds and journal; a dry run lists the changes without making them', async () => {
  const books = await newBooks()
  const sound = await rowsOf(books)
  await damage(`
    update wallet set balance = 7, sequence = 9, order_count = 4, head = '\\x01', held = 2, hold_count = 7,
      held_until = held_until + interval '1 day' where ${isWallet(books.a)};
    update wallet set balance = 100, sequence = 1, order_count = 0, head = (
      select target_mac from transfer where target_wallet_${isWallet(books.b)} and target_sequence = 1) where ${isWallet(books.b)};
    update wallet set balance = 5000 where ${isWallet(books.empty)};
    update ledger set wallet_count = 9, order_count = 0, hold_count = 0, position = 3, journal_head = '',
      last_posted_at = last_posted_at - interval '1 day'
      where ${isIn(books)};
    ${halt(books)}`)
  const damaged = await rowsOf(books)

  const shown = await repair(books, true)
  expect(shown).toMatchObject({ repaired: false, reopened: false, moreChanges: 0, report: { ok: false } })
  expect(shown.changes.map(({ target }) => target)).toEqual([books.a, books.b, books.empty, books.workspaceId])
  expect(shown.changes[0]).toMatchObject({
    before: { held: '2', holdCount: 7 },
    after: { held: '10.00', holdCount: 2 },
  })
  expect(shown.changes[3]).toMatchObject({
    before: { holdCount: 0, position: 3, journalHead: '' },
    after: { holdCount: 2, position: 8, journalHead: expect.stringMatching(/^[0-9a-f]{64}$/) },
  })
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
  const { entries } = await system.admin.audit.list.query({ workspaceId: books.workspaceId, action: 'ledger.repair' })
  expect(entries.map(({ actor, target, before, after }) => ({ actor, target, before, after })).toReversed()).toEqual(
    shown.changes.map(change => ({ actor: 'admin:a', ...change })),
  )
  await books.pay()
  expect((await verifyLedger(system.admin, books)).ok).toBe(true)
})

const ofFirstHold = (walletId: string) => `wallet_${isWallet(walletId)} and wallet_number = 1`

/** Damage that cannot be repaired. */
const damages: [string, (books: Books) => string, string][] = [
  [
    'a changed amount',
    ({ a }) => `update transfer set amount = 2 where source_wallet_${isWallet(a)} and source_sequence = 2`,
    'flow-chain',
  ],
  [
    'a changed balance',
    ({ a }) => `update transfer set source_balance = 2 where source_wallet_${isWallet(a)} and source_sequence = 2`,
    'flow-balance',
  ],
  [
    'a deleted transfer',
    ({ a }) => `delete from transfer where target_wallet_${isWallet(a)} and target_sequence = 1`,
    'flow-sequence',
  ],
  ['a changed hold', ({ a }) => `update hold set amount = 6, remaining = 6 where ${ofFirstHold(a)}`, 'hold-mac'],
  ['a deleted hold', ({ a }) => `delete from hold where ${ofFirstHold(a)}`, 'hold-life'],
  ['a changed journal entry', books => `update journal set actor = 'x' where ${isIn(books)}`, 'journal-chain'],
  ['a deleted journal entry', books => `delete from journal where position = 2 and ${isIn(books)}`, 'log-position'],
  ['a deleted wallet', ({ empty }) => `delete from wallet where ${isWallet(empty)}`, 'wallet-number'],
]

test.each(damages)('%s: repair changes nothing and names the broken rule', async (what, damageOf, rule) => {
  const books = await newBooks()
  const also = what === 'a deleted wallet' ? `update wallet set number = 9 where ${isWallet(books.b)};` : ''
  await damage(`
    ${damageOf(books)};
    ${also}
    update wallet set balance = 5000 where ${isWallet(books.b)};
    ${halt(books)}`)
  const damaged = await rowsOf(books)
  const result = await repair(books)
  expect(result).toMatchObject({ repaired: false, reopened: false, changes: [] })
  expect(result.report.brokenRules).toContainEqual({ rule, violations: expect.any(Number) })
  expect(await rowsOf(books)).toEqual(damaged)
})

test('repair refuses wallets whose last entries were deleted', async () => {
  const books = await newBooks()
  await damage(`delete from transfer where source_wallet_${isWallet(books.a)} and source_sequence = 2; ${halt(books)}`)
  const damaged = await rowsOf(books)
  await expect(repair(books)).rejects.toThrow('were deleted outside the service: nothing was repaired')
  expect(await rowsOf(books)).toEqual(damaged)
})

test('repair refuses a ledger whose last events were deleted', async () => {
  const books = await newBooks()
  await system.admin.wallets.changeStatus.mutate({
    workspaceId: books.workspaceId,
    walletId: books.empty,
    status: 'FROZEN',
  })
  await damage(`delete from journal where position = 9 and ${isIn(books)}; ${halt(books)}`)
  await signRows(system.database.ownerUrl, system.chainKey, 'ledger', isIn(books))
  const damaged = await rowsOf(books)
  await expect(repair(books)).rejects.toThrow('up to position 9 were deleted outside the service')
  expect(await rowsOf(books)).toEqual(damaged)
})

test('repair refuses a ledger that is ahead of the clock', async () => {
  const books = await newBooks()
  const inFuture = `last_posted_at = date_trunc('day', now(), 'UTC') + interval '2 days'`
  await damage(`
    update wallet set balance = 5000 where ${isWallet(books.empty)};
    update ledger set ${inFuture} where ${isIn(books)};
    ${halt(books)}`)
  await signRows(system.database.ownerUrl, system.chainKey, 'ledger', isIn(books))
  await expect(repair(books)).rejects.toThrow(
    /^wsp_\w{26} last posted at \S+T00:00:00\.000Z, when the clock of PostgreSQL was ahead: nothing was repaired, /,
  )
})

test('repair refuses a workspace that is not halted', async () => {
  const books = await newBooks()
  await expect(repair(books)).rejects.toThrow(`${books.workspaceId} is not halted: it takes postings.`)
})

test("the service's role can set a wallet of a halted workspace only to what its last flow and its holds say", async () => {
  const books = await newBooks()
  const asIs = {
    balance: 'w.balance',
    sequence: 'w.sequence',
    orders: 'w.order_count',
    head: 'w.head',
    held: 'w.held',
    until: 'w.held_until',
    holds: 'w.hold_count',
  }
  const repairTo = (change: Partial<typeof asIs>) =>
    execute(
      system.database.serviceUrl,
      `select repair_wallet(w.workspace_id, w.id, ${Object.values({ ...asIs, ...change })}, w.name, w.biz_id, w.status,
         w.frozen_by, w.mac)
       from wallet w left join flow f on f.workspace_id = w.workspace_id and f.wallet_id = w.id and f.sequence = 1
       where w.${isWallet(books.a)}`,
    )
  const refused = 'a repair of a wallet is refused'
  await expect(repairTo({})).rejects.toThrow(refused)
  await haltAsService(books)
  const changes: Partial<typeof asIs>[] = [
    { balance: '5000' },
    { orders: '7' },
    { head: "'\\\\x01'" },
    // What an earlier flow says, and what no flow says.
    { balance: 'f.balance_after', sequence: '1', orders: '0', head: 'f.mac' },
    { balance: '0', sequence: '0', orders: '0', head: "''" },
    { held: '0', until: 'null' },
    { held: '5' },
    { until: 'null' },
    { until: `w.held_until + interval '1 s'` },
    { holds: '1' },
  ]
  for (const change of changes) await expect(repairTo(change), JSON.stringify(change)).rejects.toThrow(refused)
  await repairTo({ until: `w.held_until - interval '1 s'` })
  await repairTo({})
})

test("the service's role can set a ledger only to what its wallets, transfers, holds and journal come to", async () => {
  const books = await newBooks()
  const asIs = {
    wallets: 'wallet_count',
    orders: 'order_count',
    holds: 'hold_count',
    limits: 'limit_count',
    position: 'position',
    head: 'journal_head',
    at: 'last_posted_at',
  }
  const repairTo = (change: Partial<typeof asIs>, of = books) =>
    execute(
      system.database.serviceUrl,
      `select repair_ledger(workspace_id, ${Object.values({ ...asIs, ...change })}, mac) from ledger where ${isIn(of)}`,
    )
  const refused = 'a repair of a ledger is refused'
  await expect(repairTo({})).rejects.toThrow(refused)
  await haltAsService(books)
  const changes: Partial<typeof asIs>[] = [
    { wallets: '2' },
    { orders: '0' },
    { holds: '0' },
    { limits: '1' },
    { position: '7' },
    { head: "''" },
    { at: `now() + interval '1 hour'` },
    { at: `last_posted_at - interval '1 ms'` },
  ]
  for (const change of changes) await expect(repairTo(change), JSON.stringify(change)).rejects.toThrow(refused)
  await repairTo({})

  // Its last row is one of the journal, and that of the others a transfer.
  const other = await newBooks()
  await system.admin.wallets.create.mutate({ workspaceId: other.workspaceId, currency: 'USD', name: 'Last' })
  await haltAsService(other)
  await expect(repairTo({ at: `last_posted_at - interval '1 ms'` }, other)).rejects.toThrow(refused)
  await repairTo({}, other)
})

const haltAsService = (books: Books) =>
  execute(
    system.database.serviceUrl,
    `select change_ledger_status(workspace_id, 'HALTED', 'test', mac) from ledger where ${isIn(books)}`,
  )

/** Leaves a row of the ledger that is not genuine. */
const haltByHand = (books: Books) => damage(halt(books))

test('a wallet that the service did not create is not signed', async () => {
  const books = await newBooks()
  await damage(`
    insert into wallet (workspace_id, id, number, kind, name, currency, status, created_at, updated_at, revision, mac)
    select workspace_id, gen_random_uuid(), 4, kind, name, currency, status, '2099-01-01', '2099-01-01', 1, mac
    from wallet where ${isWallet(books.a)}`)
  await haltByHand(books)
  const damaged = await rowsOf(books)
  await expect(repair(books)).rejects.toThrow('no action in the audit created it')
  expect(await rowsOf(books)).toEqual(damaged)

  await damage(`delete from wallet where ${isIn(books)} and number = 4`)
  expect(await repair(books)).toMatchObject({ reopened: true, report: { ok: true } })
  const [counters] = await query(
    system.database.ownerUrl,
    `select last_posted_at < now() + interval '1 day' as "isNow" from ledger where ${isIn(books)}`,
  )
  expect(counters).toEqual({ isNow: true })
})

/** What an attacker inserts as the owner of the tables while the verification, which has its snapshot, waits for a lock. */
const insertions: [string, (books: Books) => string, string][] = [
  [
    'transfers',
    ({ a }) => `
      insert into transfer
      select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'position', 9, 'order_count', 2,
        'amount', 1000, 'source_sequence', 3, 'source_order_count', 2, 'source_balance', 5000,
        'target_sequence', 3, 'target_order_count', 2, 'target_balance', 5000))).*
      from transfer t where source_wallet_${isWallet(a)} and source_sequence = 2`,
    'inserted or changed outside the service',
  ],
  [
    'holds',
    ({ a }) => `
      insert into hold
      select (jsonb_populate_record(h, jsonb_build_object('id', gen_random_uuid(), 'biz_id', 'forged', 'number', 3,
        'wallet_number', 3))).*
      from hold h where ${ofFirstHold(a)}`,
    'inserted or changed outside the service',
  ],
  [
    'journal entries',
    books => `
      insert into journal select (jsonb_populate_record(j, '{"position": 9}')).* from journal j
      where position = 2 and ${isIn(books)}`,
    'Journal entries of',
  ],
]

/** Repairs wallets that were damaged. The action runs while the verification, which has its snapshot, waits for a lock. */
async function repairDuring(books: Books, action: () => Promise<void>): Promise<unknown> {
  await damage(`update wallet set revision = revision + 1 where ${isWallet(books.a)} or ${isWallet(books.b)}`)
  await haltByHand(books)
  const damaged = await rowsOf(books)
  const blocker = await connect(system.database.ownerUrl)
  try {
    // The verification takes its snapshot before it waits for this lock.
    await blocker.query('begin; lock table access_change, member in access exclusive mode')
    const repairing = repair(books).catch((error: Error) => error)
    await until('the verification waits', async () => {
      const waiting = `select from pg_stat_activity
        where datname = current_database() and application_name = 'core verify' and wait_event_type = 'Lock'`
      return (await query(system.database.ownerUrl, waiting)).length > 0
    })
    await action()
    await blocker.query('commit')
    const outcome = await repairing
    expect(await rowsOf(books)).toEqual(damaged)
    return outcome
  } finally {
    await blocker.end()
  }
}

test.each(insertions)('%s inserted during the verification: nothing is signed', async (...row) => {
  const [, insertion, message] = row
  const books = await newBooks()
  const outcome = await repairDuring(books, () => execute(system.database.ownerUrl, insertion(books)))
  expect(outcome).toMatchObject({ message: expect.stringContaining(message) })
})

test('forged entries in the audit do not prevent a repair: it skips them, and only reopen --force opens the workspace', async () => {
  const books = await newBooks()
  const { workspaceId, a, b } = books
  const { admin } = system
  await admin.wallets.changeStatus.mutate({ workspaceId, walletId: b, status: 'FROZEN' })
  const asService = (sql: string) => execute(system.database.serviceUrl, sql)
  await haltAsService(books)
  await asService(
    `select repair_wallet(workspace_id, id, balance, sequence, order_count, head, held, held_until, hold_count, 'Evil', 'evil ' || number, 'ACTIVE',
       null, '\\x01') from wallet where ${isIn(books)} and kind = 'CUSTOMER'`,
  )
  const forge = (action: string, target: string, after: string) =>
    asService(
      `insert into audit (at, actor, action, workspace_id, target, after, position, mac)
       select at, 'operator:ada', '${action}', workspace_id, '${target}', '${after}', position + 1, '\\x01'
       from lock_audit(array['${uuidFromId('workspace', workspaceId)}'::uuid]) head (workspace_id, position, mac, at)`,
    )
  await forge('wallet.create', a, '{"name":"Forged","currency":"USD"}')
  await forge('wallet.freeze', a, '{"status":"FROZEN","frozenBy":"OPERATOR"}')
  await forge('wallet.unfreeze', b, '{"status":"ACTIVE","frozenBy":null}')
  await forge('system.backup', 'x', '{}')

  const done = await repair(books)
  const forged = [{ rule: 'audit-chain', violations: 4 }]
  expect(done).toMatchObject({ repaired: true, reopened: false, report: { brokenRules: forged } })
  const { wallets } = await admin.wallets.search.query({ workspaceId, limit: 10 })
  expect(new Map(wallets.map(each => [each.walletId, [each.name, each.bizId, each.status, each.frozenBy]]))).toEqual(
    new Map([
      [a, ['Wallet', null, 'ACTIVE', null]],
      [b, ['Wallet', null, 'FROZEN', 'OPERATOR']],
      [books.empty, ['Wallet', null, 'ACTIVE', null]],
    ]),
  )
  expect(await reopenLedger(admin, { workspaceId, force: false })).toMatchObject({ reopened: false })
  expect(await reopenLedger(admin, { workspaceId, force: true })).toMatchObject({ reopened: true })
  await admin.wallets.deposit.mutate({ workspaceId, walletId: a, amount: '1.00', bizId: 'after' })
  expect((await verifyLedger(admin, { workspaceId })).brokenRules).toEqual(forged)
})

test('the status of a wallet is not taken from a journal entry that was changed during the verification', async () => {
  const books = await newBooks()
  const outcome = await repairDuring(books, () =>
    damage(`update journal set status = 'CLOSED' where wallet_${isWallet(books.b)} and ${isIn(books)}`),
  )
  expect(outcome).toMatchObject({ message: expect.stringContaining('were changed outside the service') })
})

const deletions: [string, (books: Books) => string, string][] = [
  [
    'the last flow',
    ({ a }) => `delete from transfer where source_wallet_${isWallet(a)} and source_sequence = 2`,
    'Flows of',
  ],
  ['a hold', ({ a }) => `delete from hold where ${ofFirstHold(a)}`, 'Holds of'],
]

test.each(deletions)('%s deleted during the verification: nothing is signed', async (...row) => {
  const [, deletion, message] = row
  const books = await newBooks()
  const outcome = await repairDuring(books, () => damage(deletion(books)))
  expect(outcome).toMatchObject({ message: expect.stringContaining(message) })
})

/** What an attacker changes in rows that exist, as the owner of the tables, at the same time. */
const changes: [string, (books: Books) => string][] = [
  [
    'the balance after the last flow',
    ({ b }) => `update transfer set target_balance = 5000 where target_wallet_${isWallet(b)} and target_sequence = 2`,
  ],
  ['what a hold reserves', ({ a }) => `update hold set amount = 4, remaining = 4 where ${ofFirstHold(a)}`],
  [
    'when a hold expires',
    ({ a }) => `update hold set expires_at = expires_at + interval '1 day' where ${ofFirstHold(a)}`,
  ],
]

test.each(changes)('%s changed during the verification: nothing is signed', async (_, change) => {
  const books = await newBooks()
  const outcome = await repairDuring(books, () => damage(change(books)))
  expect(outcome).toMatchObject({
    message: expect.stringContaining('changed outside the service during the verification'),
  })
})
