import type { KeyObject } from 'node:crypto'
import { randomUUID } from 'node:crypto'
import { postingGraceMs, uuidFromId } from '@workspace-wallet/contract'
import { createLog } from '@workspace-wallet/runtime'
import type pg from 'pg'
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../../test/setup/core.ts'
import { connect, execute, query, type TestDatabase } from '../../../../../test/setup/database.ts'
import { postingOf, requestOf } from '../../../../../test/setup/ledger-states.ts'
import { until } from '../../../../../test/setup/until.ts'
import { openPool } from '../../database/pool.ts'
import type { LedgerRequest, Posting, RequestResult } from '../decide/requests.ts'
import { Halts } from '../store/halt.ts'
import { type LedgerStore, postBatch } from './batch.ts'
import { commitFromMemory } from './commit-from-memory.ts'
import type { Outcome } from './commit-under-lock.ts'
import { RememberedLedgers } from './remembered-ledgers.ts'

/** When a core posts from memory, without reading first, and when it reads again. */
const { log } = createLog('test', 'silent')
let database: TestDatabase
let chainKey: KeyObject
let testCore: TestCore
let pool: pg.Pool
let a: string
let b: string
let workspaceId: string
let ours: LedgerStore
let theirs: LedgerStore

beforeAll(async () => {
  testCore = await openTestCore()
  ;({ database, chainKey } = testCore)
  pool = openPool(database.serviceUrl, { name: 'ledger', max: 2, pipeline: true, chainKey })
})
afterAll(async () => {
  await pool.end()
  await testCore.close()
})

const admin = () => testCore.as('admin')
const newStore = (): LedgerStore => ({
  pool,
  chainKey,
  log,
  remembered: new RememberedLedgers(),
  halts: new Halts(pool, chainKey, log),
})

beforeEach(async () => {
  const workspace = await admin().workspaces.create({ name: 'Test' })
  workspaceId = workspace.workspaceId
  a = await newWallet()
  b = await newWallet()
  ours = newStore()
  theirs = newStore()
})

async function newWallet(): Promise<string> {
  const { walletId } = await admin().wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  await admin().wallets.deposit({ workspaceId, walletId, amount: '100.00', bizId: randomUUID() })
  return walletId
}

function request(given: Partial<Posting> = {}, changes?: Partial<LedgerRequest>): LedgerRequest {
  const wallets = { sourceWalletId: uuidFromId('wallet', a)!, targetWalletId: uuidFromId('wallet', b)! }
  return requestOf(uuidFromId('workspace', workspaceId)!, postingOf({ ...wallets, ...given }), changes)
}

/** The same request with a new transferId. */
function resent({ commands, ...rest }: LedgerRequest): LedgerRequest {
  const { transferId } = postingOf()
  return { ...rest, commands: commands.map(command => ({ ...command, transferId }) as Posting) }
}

const isRecalled = (store: LedgerStore, given?: Partial<Posting>) =>
  store.remembered.recall([request(given)], new Date()) !== null

const kinds = (results: RequestResult[] = []) => results.map(({ kind }) => kind)
const pay = async (store: LedgerStore, given?: Partial<Posting>) => kinds(await postBatch(store, [request(given)]))

/** Posts from memory, which `postBatch` tries first. */
async function payFromMemory(
  store: LedgerStore,
  given?: Partial<Posting>,
  changes?: Partial<LedgerRequest>,
): Promise<Outcome | null> {
  const outcome = await commitFromMemory(pool, chainKey, store.remembered, [request(given, changes)])
  if (outcome?.written) store.remembered.remember(outcome.written.rows, outcome.written)
  return outcome
}

/** Posts until the ledger counts as undisturbed. */
async function settle(store: LedgerStore, given?: Partial<Posting>): Promise<void> {
  for (let at = 0; at < 9; at++) expect(await pay(store, given)).toEqual(['posted'])
}

test('a core posts from memory to the ledgers that it posted to before', async () => {
  expect(await payFromMemory(ours)).toBeNull()
  expect(await pay(ours)).toEqual(['posted'])
  for (let at = 0; at < 3; at++) expect(kinds((await payFromMemory(ours))?.results)).toEqual(['posted'])
  expect(
    (await admin().wallets.balance({ workspaceId, walletId: a, caller: { requestId: 'test' } })).balance.toFixed(2),
  ).toBe('96.00')
})

test('a wallet that is not remembered, a posting that may exist, and a deposit require reading first', async () => {
  expect(await pay(ours)).toEqual(['posted'])
  const c = uuidFromId('wallet', await newWallet())!
  await settle(ours)
  expect(await payFromMemory(ours, { targetWalletId: c })).toBeNull()
  expect(await payFromMemory(ours, {}, { mayBePosted: true })).toBeNull()
  expect(await payFromMemory(ours, { type: 'DEPOSIT' })).toBeNull()
  expect(kinds((await payFromMemory(ours))?.results)).toEqual(['posted'])
})

test('no posting is refused from memory, because its bizId was not looked up', async () => {
  const again = request({ bizId: 'salary', amount: '60.00' })
  expect(kinds(await postBatch(ours, [again]))).toEqual(['posted'])
  const second = resent(again)
  // The balance of 40.00 is too low, but this is a replay.
  expect(await commitFromMemory(pool, chainKey, ours.remembered, [second])).toBeNull()
  expect(kinds(await postBatch(ours, [second]))).toEqual(['replayed'])
  // With a sufficient balance, writing finds the duplicate bizId.
  const rent = request({ bizId: 'rent' })
  expect(kinds(await postBatch(ours, [rent]))).toEqual(['posted'])
  const rentAgain = resent(rent)
  expect(kinds(await postBatch(ours, [rentAgain]))).toEqual(['replayed'])
})

test('a client that repeats a bizId does not make every batch run twice', async () => {
  const bizId = 'salary'
  await settle(ours)
  expect(kinds(await postBatch(ours, [request({ bizId })]))).toEqual(['posted'])
  expect(isRecalled(ours)).toBe(true)
  // Writing the whole batch finds the duplicate bizId.
  expect(kinds(await postBatch(ours, [request({ bizId }), request()]))).toEqual(['replayed', 'posted'])
  expect(isRecalled(ours)).toBe(false)
  await settle(ours)
  expect(isRecalled(ours)).toBe(true)
})

test('a delayed batch is not written after its callers may have received S002', async () => {
  expect(await pay(ours)).toEqual(['posted'])
  const locker = await connect(database.ownerUrl)
  await locker.query('begin')
  await locker.query('select from ledger where workspace_id = $1 for update', [uuidFromId('workspace', workspaceId)])
  const late = request({}, { deadlineMs: performance.now() + 500 - postingGraceMs })
  // On a busy machine, the wait for the lock may time out.
  const sent = commitFromMemory(pool, chainKey, ours.remembered, [late]).catch(() => null)
  await until('the posting is too late', () => performance.now() > late.deadlineMs + postingGraceMs)
  await locker.end()
  expect(await sent).toBeNull()
  expect(
    await query(database.ownerUrl, `select from transfer where id = '${(late.commands[0] as Posting).transferId}'`),
  ).toEqual([])
})

test('a core detects that another core has posted, and reads the ledger until it stays unchanged', async () => {
  expect(await pay(ours)).toEqual(['posted'])
  expect(await pay(theirs)).toEqual(['posted'])
  expect(await payFromMemory(ours)).toBeNull()
  for (let at = 0; at < 9; at++) {
    expect(isRecalled(ours)).toBe(false)
    expect(await pay(ours)).toEqual(['posted'])
  }
  expect(kinds((await payFromMemory(ours))?.results)).toEqual(['posted'])
})

test('a transfer to a wallet that was frozen since is refused', async () => {
  expect(await pay(ours)).toEqual(['posted'])
  await admin().wallets.changeStatus({ workspaceId, walletId: b, status: 'FROZEN' })
  expect(await postBatch(ours, [request()])).toMatchObject([{ kind: 'refused', error: { code: 'W002' } }])
})

test.each([
  ['a balance', () => `update wallet set balance = 5000 where id = '${uuidFromId('wallet', a)}'`],
  ['a head', () => `update wallet set head = '\\x01' where id = '${uuidFromId('wallet', a)}'`],
  ['a name', () => `update wallet set name = 'Mine' where id = '${uuidFromId('wallet', b)}'`],
  ['a MAC', () => `update wallet set mac = '\\x01' where id = '${uuidFromId('wallet', a)}'`],
  [
    'a counter',
    () => `update ledger set order_count = 7 where workspace_id = '${uuidFromId('workspace', workspaceId)}'`,
  ],
])('%s that was modified outside the service halts the workspace', async (_, damage) => {
  expect(await pay(ours)).toEqual(['posted'])
  await execute(database.ownerUrl, damage())
  expect(await postBatch(ours, [request()])).toMatchObject([{ kind: 'refused', error: { code: 'S002' } }])
  await ours.halts.idle()
  const { ledgers } = await admin().ledger.halted()
  expect(ledgers.map(ledger => ledger.workspaceId)).toContain(workspaceId)
})

test('transfer times come from the database and never decrease', async () => {
  for (let at = 0; at < 20; at++) expect(await pay(ours)).toEqual(['posted'])
  const rows = await query(
    database.ownerUrl,
    `select created_at >= lag(created_at, 1, created_at) over (order by position) and created_at <= clock_timestamp() as sound
     from transfer where workspace_id = '${uuidFromId('workspace', workspaceId)}' and type = 'TRANSFER'`,
  )
  expect(rows).toEqual(Array.from({ length: 20 }, () => ({ sound: true })))
})

/** Remembers a batch like any other, and then fails. */
class FailingMemory extends RememberedLedgers {
  override remember(...given: Parameters<RememberedLedgers['remember']>): void {
    super.remember(...given)
    throw new TypeError('a fault of the memory')
  }
}

test.each<[string, () => LedgerStore]>([
  ['remembered', () => ({ ...newStore(), remembered: new FailingMemory() })],
  [
    'counted',
    () => ({
      ...newStore(),
      onWritten: () => {
        throw new TypeError('a fault of the metrics')
      },
    }),
  ],
])(
  'a batch is answered as posted if its rows cannot be %s after the commit, and they are read again',
  async (_, failing) => {
    const store = failing()
    const [one, ...two] = [request(), request(), request()]
    expect(kinds(await postBatch(store, [one!]))).toEqual(['posted'])
    expect(kinds(await postBatch(store, two))).toEqual(['posted', 'posted'])
    expect(isRecalled(store)).toBe(false)
    const posted = [one!, ...two].map(({ commands }) => `'${(commands[0] as Posting).transferId}'`)
    const rows = await query(database.ownerUrl, `select from transfer where id in (${posted})`)
    expect(rows).toHaveLength(3)
  },
)

test('only the most recently used wallets are remembered, up to the limit', async () => {
  const small: LedgerStore = { ...newStore(), remembered: new RememberedLedgers(3) }
  expect(await pay(small)).toEqual(['posted'])
  const [c, d] = [uuidFromId('wallet', await newWallet())!, uuidFromId('wallet', await newWallet())!]
  await settle(small, { sourceWalletId: c, targetWalletId: d })
  expect(isRecalled(small, { sourceWalletId: c, targetWalletId: d })).toBe(true)
  expect(isRecalled(small)).toBe(false)
})
