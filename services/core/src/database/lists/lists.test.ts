import { randomUUID } from 'node:crypto'
import {
  Decimal,
  type Flow,
  type Hold,
  idFromUuid,
  mintId,
  type Page,
  type TransferOrder,
  type Uuid,
  uuidFromId,
  type Wallet,
} from '@workspace-wallet/contract'
import fc from 'fast-check'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chooseSeed, Random } from '../../../../../cli/processes/random.ts'
import { openTestCore, type TestCore } from '../../../../../test/setup/core.ts'
import type { TestDatabase } from '../../../../../test/setup/database.ts'
import { listFlows, listWallets } from '../../wallets/queries.ts'
import { run } from '../statement.ts'
import type { ListDatabase } from './list-reader.ts'

/**
 * Compares every list with a model that filters, sorts and slices all rows in JavaScript. The ledger posts the rows in
 * bursts, so that many have the same time.
 */
const seed = chooseSeed()
console.log(`lists: SEED=${seed}`)
const random = new Random(seed)

let database: TestDatabase
let testCore: TestCore
let busy: Books
let other: Books
let empty: Books

beforeAll(async () => {
  testCore = await openTestCore()
  ;({ database } = testCore)
  empty = await newBooks()
  other = await newBooks()
  busy = await newBooks()
  await fill(other, ['USD', 'USD'], 6)
  await fill(busy, ['USD', 'USD', 'EUR', 'USD', 'EUR', 'JPY', 'EUR', 'USD'], 240)
  await as('admin').wallets.changeStatus({
    workspaceId: busy.workspaceId,
    walletId: busy.wallets[3]!.walletId,
    status: 'FROZEN',
  })
  await as('admin').wallets.changeStatus({
    workspaceId: busy.workspaceId,
    walletId: busy.wallets[5]!.walletId,
    status: 'CLOSED',
  })
  await expireHolds(busy)
  for (const books of [busy, other]) await load(books)
})
afterAll(async () => {
  await testCore.close()
})

const caller = { requestId: 'test' }
const as = (role: 'admin' | 'service') => testCore.as(role)

/** A workspace with the rows of the model: wallets in order of creation, orders and flows in order of posting. */
type Books = {
  workspaceId: string
  wallets: Wallet[]
  orders: TransferOrder[]
  flows: Map<string, Flow[]>
  holds: Hold[]
  /** The EXTERNAL wallets. */
  external: string[]
}

async function newBooks(): Promise<Books> {
  const { workspaceId } = await as('admin').workspaces.create({ name: 'Test' })
  return { workspaceId, wallets: [], orders: [], flows: new Map(), holds: [], external: [] }
}

const names = ['b', 'a', 'B', 'Zoë', 'a', '😀', '～', 'a ']
const amounts = ['1', '1.0', '1.00', '2.5', '0.5', '3', '10', '0.75']
const holdBizIds = ['h-', 'h_', 'hold-', 'hldx', 'trf_']
const references = ['invoice-1', 'invoice-10', 'case/7', '%']
/** Prefixes of bizIds; null for orders without one. */
const bizIds = [null, null, null, 't-', 'tr-', 'trf-', 'trf_x-', 'a_b-', 'axb-', 'inv.2026:', 'A-', 'zz-']

/** Creates wallets of these currencies, then posts in bursts, because postings of one batch have the same time. */
async function fill(books: Books, currencies: string[], orders: number): Promise<void> {
  const { workspaceId, wallets } = books
  for (const [at, currency] of currencies.entries())
    wallets.push(await as('admin').wallets.create({ workspaceId, currency, name: names[at % names.length]! }))
  const payers = wallets.filter(({ currency }) => currency !== 'JPY')
  for (const { walletId } of payers)
    await as('admin').wallets.deposit({ workspaceId, walletId, amount: '1000.00', caller, bizId: randomUUID() })
  await postExamples(books, wallets.slice(0, 2))
  for (let posted = 0; posted < orders; ) {
    const burst = Array.from({ length: Math.min(1 + random.int(40), orders - posted) }, (_, at) =>
      post(books, payers, posted + at),
    )
    posted += (await Promise.all(burst)).length
  }
}

/** Gives each filter something to find, in all rows and in those of the first wallet, whatever the seed. */
async function postExamples(books: Books, [first, second]: Wallet[]): Promise<void> {
  const { workspaceId } = books
  const [source, target] = [first!.walletId, second!.walletId]
  const terms = { amount: '1', currency: first!.currency }
  const transfer = { ...terms, sourceWalletId: source, targetWalletId: target }
  const create = (order: object) =>
    as('service').transfers.create({ workspaceId, caller, order: { ...transfer, ...order } })
  for (const start of bizIds) await create(start ? { bizId: `${start}example` } : {})
  for (const reference of references) await create({ reference })
  // A number that no random posting has, because bizIds are unique.
  await batch(books, [first!, second!], 1_000)
  await as('admin').wallets.withdraw({ workspaceId, walletId: source, amount: '1', caller, bizId: randomUUID() })
  // Enough that some stay open when a third of them expires.
  const holds: string[] = []
  for (let at = 0; at < 12; at++) {
    const reference = references[at % references.length]!
    const hold = {
      ...terms,
      walletId: source,
      expiresInSeconds: 3600,
      bizId: `${holdBizIds[at % 5]}example-${at}`,
      reference,
    }
    holds.push((await as('service').holds.create({ workspaceId, caller, hold })).holdId)
  }
  await create({ holdId: holds[0] })
  await as('service').holds.release({ workspaceId, caller, holdId: holds[1]! })
}

/** Posts a deposit or withdrawal, a hold and a draw on it, a batch with a reversal, or most often an order. */
async function post(books: Books, payers: Wallet[], at: number): Promise<unknown> {
  const chosen = random.next()
  if (chosen < 0.1) return fund(books, random.pick(payers))
  if (chosen < 0.3) return holdAndDraw(books, payers, at)
  return chosen < 0.35 ? batch(books, payers, at) : order(books, payers, at)
}

function order({ workspaceId }: Books, wallets: Wallet[], at: number): Promise<unknown> {
  const start = bizIds[at % bizIds.length]
  const order = { ...orderBetween(wallets), ...(start ? { bizId: `${start}${at}` } : {}) }
  return as('service').transfers.create({ workspaceId, caller, order })
}

function orderBetween(wallets: Wallet[]) {
  const source = random.pick(wallets)
  const target = random.pick(wallets.filter(each => each !== source && each.currency === source.currency))
  return {
    sourceWalletId: source.walletId,
    targetWalletId: target.walletId,
    amount: random.pick(amounts),
    currency: source.currency,
    ...(random.chance(0.3) ? { remark: 'for lunch' } : {}),
    ...(random.chance(0.3) ? { reference: random.pick(references) } : {}),
  }
}

/** A hold, and then two draws on it, a release, or nothing. */
async function holdAndDraw({ workspaceId }: Books, wallets: Wallet[], at: number): Promise<unknown> {
  const order = { ...orderBetween(wallets), amount: '0.25' }
  const { currency, sourceWalletId: walletId } = order
  const terms = { walletId, currency, expiresInSeconds: 3600, bizId: `${random.pick(holdBizIds)}${at}` }
  const hold = {
    ...terms,
    amount: random.pick(amounts),
    ...(random.chance(0.5) ? { reference: random.pick(references) } : {}),
    ...(random.chance(0.3) ? { remark: 'for the room' } : {}),
  }
  const { holdId } = await as('service').holds.create({ workspaceId, caller, hold })
  const chosen = random.next()
  if (chosen < 0.4) return
  if (chosen < 0.5) return as('service').holds.release({ workspaceId, caller, holdId })
  if (chosen < 0.7) return as('service').transfers.create({ workspaceId, caller, order: { ...order, holdId } })
  const drawing = { workspaceId, caller, order: { ...order, holdId, holdRemainder: 'KEEP' as const } }
  return Promise.all([as('service').transfers.create(drawing), as('service').transfers.create(drawing)])
}

/** Two orders, and two reversals of the first. */
function batch({ workspaceId }: Books, wallets: Wallet[], at: number): Promise<unknown> {
  const named = (name: string) => ({ ...orderBetween(wallets), bizId: `batch-${at}-${name}` })
  const first = { ...named('a'), amount: '3' }
  const reversal = (name: string) => ({
    reversesTransferId: first.bizId,
    amount: '0.5',
    currency: first.currency,
    bizId: `batch-${at}-${name}`,
  })
  const transfers = [first, reversal('c'), named('b'), reversal('d')]
  return as('service').transfers.batch({ workspaceId, caller, batch: { transfers } })
}

function fund({ workspaceId }: Books, { walletId }: Wallet): Promise<unknown> {
  const funding = { workspaceId, walletId, amount: random.pick(amounts), caller }
  return random.chance(0.5)
    ? as('admin').wallets.deposit({ ...funding, bizId: randomUUID() })
    : as('admin').wallets.withdraw({ ...funding, bizId: randomUUID() })
}

/** Lets a third of the open holds expire, and writes that of half of them. A sweep passes a halted ledger. */
async function expireHolds({ workspaceId }: Books): Promise<void> {
  const client = new pg.Client({ connectionString: database.ownerUrl })
  await client.connect()
  await client.query(`set session_replication_role = replica`)
  const change = (sql: string) => client.query(sql, [uuidFromId('workspace', workspaceId)])
  await change(`update ledger set status = 'HALTED' where workspace_id = $1`)
  const due = await change(`update hold set expires_at = created_at + interval '1 ms'
    where workspace_id = $1 and status = 'OPEN' and number % 3 = 0`)
  const written = await change(`update hold set status = 'EXPIRED', remaining = 0, updated_at = expires_at
    where workspace_id = $1 and status = 'OPEN' and number % 6 = 0`)
  expect(due.rowCount).toBeGreaterThan(written.rowCount!)
  await client.end()
}

/** Reads all rows of the model with plain SQL. */
async function load(books: Books): Promise<void> {
  const client = new pg.Client({ connectionString: database.ownerUrl })
  await client.connect()
  const select = async (sql: string) => (await client.query(sql, [uuidFromId('workspace', books.workspaceId)])).rows
  const transfers = await select('select * from transfer where workspace_id = $1 order by position')
  const flows = await select('select * from flow where workspace_id = $1 order by wallet_id, sequence')
  const holds = await select('select * from hold where workspace_id = $1 order by number')
  const external = await select(`select id from wallet where workspace_id = $1 and kind = 'EXTERNAL'`)
  await client.end()

  const { workspaceId } = books
  const get = (walletId: string) => as('service').wallets.get({ workspaceId, walletId, caller })
  books.wallets = await Promise.all(books.wallets.map(({ walletId }) => get(walletId)))
  books.external = external.map(({ id }) => idFromUuid('wallet', id))
  books.orders = transfers.filter(({ type }) => type === 'TRANSFER').map(orderOfRow)
  books.holds = holds.map(holdOfRow)
  const transferById = new Map(transfers.map(transfer => [transfer.id, transfer]))
  for (const { walletId } of books.wallets) books.flows.set(walletId, [])
  for (const row of flows) {
    const walletId = idFromUuid('wallet', row.wallet_id)
    books.flows.get(walletId)?.push(flowOfRow(walletId, row, transferById.get(row.transfer_id)))
  }
}

// biome-ignore lint/suspicious/noExplicitAny: rows of the driver
function orderOfRow(row: any, _: number, all: any[]): TransferOrder {
  const transferId = idFromUuid('transfer', row.id)
  return {
    transferId,
    bizId: row.biz_id ?? transferId,
    status: 'COMPLETED',
    amount: row.amount,
    currency: row.currency,
    sourceWalletId: idFromUuid('wallet', row.source_wallet_id),
    targetWalletId: idFromUuid('wallet', row.target_wallet_id),
    remark: row.remark,
    reference: row.reference,
    holdId: row.hold_id && idFromUuid('hold', row.hold_id),
    batchId: row.batch_id && idFromUuid('transfer', row.batch_id),
    reversesTransferId: row.reverses_id && idFromUuid('transfer', row.reverses_id),
    reversedAmount: Decimal.sum(0, ...all.filter(each => each.reverses_id === row.id).map(each => each.amount)),
    createdAt: row.created_at,
    updatedAt: row.created_at,
    completedAt: row.created_at,
  }
}

/** The holds of the model expire an hour after their creation, or have expired. */
// biome-ignore lint/suspicious/noExplicitAny: rows of the driver
function holdOfRow(row: any): Hold {
  const isExpired = row.status === 'OPEN' && row.expires_at < new Date()
  return {
    holdId: idFromUuid('hold', row.id),
    bizId: row.biz_id,
    walletId: idFromUuid('wallet', row.wallet_id),
    currency: row.currency,
    amount: row.amount,
    capturedAmount: new Decimal(row.captured),
    remainingAmount: new Decimal(isExpired ? 0 : row.remaining),
    status: isExpired ? 'EXPIRED' : row.status,
    expiresAt: row.expires_at,
    reference: row.reference,
    remark: row.remark,
    createdAt: row.created_at,
    updatedAt: isExpired ? row.expires_at : row.updated_at,
  }
}

// biome-ignore lint/suspicious/noExplicitAny: rows of the driver
function flowOfRow(walletId: string, flow: any, transfer: any): Flow {
  const isOut = flow.direction === 'OUT'
  const uuid = flow.transfer_id as string
  const flipped = uuid.slice(0, -1) + (Number.parseInt(uuid.slice(-1), 16) ^ 1).toString(16)
  const counterparty = idFromUuid('wallet', isOut ? transfer.target_wallet_id : transfer.source_wallet_id)
  return {
    flowId: idFromUuid('flow', (isOut ? uuid : flipped) as Uuid<'flow'>),
    walletId,
    sequence: Number(flow.sequence),
    direction: flow.direction,
    type: transfer.type,
    amount: flow.amount,
    balanceAfter: new Decimal(flow.balance_after),
    currency: transfer.currency,
    transferId: idFromUuid('transfer', uuid as Uuid<'transfer'>),
    counterpartyWalletId: transfer.type === 'TRANSFER' ? counterparty : null,
    createdAt: flow.created_at,
  }
}

type SortField<Field extends string = string> = { field: Field; direction: 'asc' | 'desc' }
// biome-ignore lint/suspicious/noExplicitAny: filters and sorts are drawn at random, and checked by the schemas
type Query = { filter: any; sort: any; page: number; size: number }

/** The model: rows in the order of their numbers, the predicate of each filter, the sort key of each field. */
type Model<Row> = {
  rows: Row[]
  keeps: Record<string, (row: Row, value: never) => boolean>
  fields: Record<string, (row: Row) => unknown>
}

const newestFirst = { field: 'createdAt', direction: 'desc' } as const

function pageOfModel<Row>({ rows, keeps, fields }: Model<Row>, { filter, sort, page, size }: Query): Page<Row> {
  const numbered = rows.map((row, number) => ({ row, number }))
  const kept = numbered.filter(({ row }) =>
    Object.entries(filter).every(([name, value]) => value === undefined || keeps[name]!(row, value as never)),
  )
  // A field with the same value in all rows, or with the sort key of an earlier field, has no effect.
  const seen = new Set<unknown>()
  const effective = (sort as SortField[]).filter(({ field }) => {
    const isNew = fields[field] !== constant && !seen.has(fields[field])
    seen.add(fields[field])
    return isNew
  })
  const numberDirection = effective.at(-1)?.direction ?? newestFirst.direction
  const sorted = kept.toSorted((a, b) => {
    for (const { field, direction } of effective) {
      const order = compare(fields[field]!(a.row), fields[field]!(b.row))
      if (order !== 0) return direction === 'asc' ? order : -order
    }
    return numberDirection === 'asc' ? a.number - b.number : b.number - a.number
  })
  const totalElements = sorted.length
  return {
    content: sorted.slice(page * size, (page + 1) * size).map(({ row }) => row),
    page: {
      size,
      number: totalElements === 0 ? 0 : page,
      totalElements,
      totalPages: Math.ceil(totalElements / size),
    },
  }
}

function compare(a: unknown, b: unknown): number {
  if (a instanceof Decimal) return a.comparedTo(b as Decimal)
  if (a instanceof Date) return a.getTime() - (b as Date).getTime()
  return Buffer.compare(Buffer.from(String(a)), Buffer.from(String(b)))
}

const constant = () => 0
const createdAt = ({ createdAt }: { createdAt: Date }) => createdAt
const amount = ({ amount }: { amount: string }) => new Decimal(amount)
const createdKeeps = {
  createdFrom: (row: { createdAt: Date }, from: Date) => row.createdAt >= from,
  createdTo: (row: { createdAt: Date }, to: Date) => row.createdAt < to,
}

const walletModel = (books: Books): Model<Wallet> => ({
  rows: books.wallets,
  keeps: {
    ...createdKeeps,
    status: (row, status: string) => row.status === status,
    currency: (row, currency: string) => row.currency === currency,
    walletIdPrefix: (row, prefix: string) => row.walletId.startsWith(prefix),
  },
  fields: {
    createdAt,
    updatedAt: row => row.updatedAt,
    amount: row => row.balance,
    status: row => row.status,
    name: row => row.name,
    currency: row => row.currency,
  },
})

const flowModel = (books: Books, walletId: string): Model<Flow> => ({
  rows: books.flows.get(walletId)!,
  keeps: {
    ...createdKeeps,
    direction: (row, direction: string) => row.direction === direction,
    type: (row, type: string) => row.type === type,
    transferIdPrefix: (row, prefix: string) => row.transferId.startsWith(prefix),
  },
  fields: { createdAt, updatedAt: createdAt, amount, status: constant },
})

const orderModel = (books: Books, walletId?: string): Model<TransferOrder> => ({
  rows: books.orders.filter(
    row => walletId === undefined || row.sourceWalletId === walletId || row.targetWalletId === walletId,
  ),
  keeps: {
    ...createdKeeps,
    status: (row, status: string) => row.status === status,
    currency: (row, currency: string) => row.currency === currency,
    transferIdPrefix: (row, prefix: string) => row.transferId.startsWith(prefix),
    bizIdPrefix: (row, prefix: string) => row.bizId.startsWith(prefix),
    reference: (row, reference: string) => row.reference === reference,
    holdId: (row, holdId: string) => row.holdId === holdId,
    batchId: (row, batchId: string) => row.batchId === batchId,
    reversesTransferId: (row, transferId: string) => row.reversesTransferId === transferId,
  },
  fields: { createdAt, updatedAt: createdAt, amount, status: constant },
})

const holdModel = (books: Books, walletId?: string): Model<Hold> => ({
  rows: books.holds.filter(row => walletId === undefined || row.walletId === walletId),
  keeps: {
    ...createdKeeps,
    status: (row, status: string) => row.status === status,
    currency: (row, currency: string) => row.currency === currency,
    reference: (row, reference: string) => row.reference === reference,
    bizIdPrefix: (row, prefix: string) => row.bizId.startsWith(prefix),
  },
  fields: { createdAt, updatedAt: row => row.updatedAt, amount, status: row => row.status },
})

/** A list and its model. */
type Subject = {
  name: string
  read: (query: Query) => Promise<Page<unknown>>
  // biome-ignore lint/suspicious/noExplicitAny: each list has its own rows
  model: Model<any>
}

const walletList = (books: Books): Subject => ({
  name: 'wallets',
  read: query => as('service').wallets.list({ workspaceId: books.workspaceId, caller, ...query }),
  model: walletModel(books),
})
const flowList = (books: Books, walletId: string): Subject => ({
  name: 'flows',
  read: query => as('service').wallets.flows({ workspaceId: books.workspaceId, walletId, caller, ...query }),
  model: flowModel(books, walletId),
})
const orderList = (books: Books, walletId?: string): Subject => ({
  name: walletId ? "a wallet's orders" : 'orders',
  read: query =>
    as('service').transfers.list({
      workspaceId: books.workspaceId,
      caller,
      ...(walletId ? { walletId } : {}),
      ...query,
    }),
  model: orderModel(books, walletId),
})

const holdList = (books: Books, walletId?: string): Subject => ({
  name: walletId ? "a wallet's holds" : 'holds',
  read: query =>
    as('service').holds.list({
      workspaceId: books.workspaceId,
      caller,
      ...(walletId ? { walletId } : {}),
      ...query,
    }),
  model: holdModel(books, walletId),
})

/** One list of each kind. */
function allLists(books: Books): Subject[] {
  const { walletId } = books.wallets[0]!
  return [
    walletList(books),
    flowList(books, walletId),
    orderList(books),
    orderList(books, walletId),
    holdList(books),
    holdList(books, walletId),
  ]
}

const plain: Query = { filter: {}, sort: [], page: 0, size: 20 }

/** Decimals and dates as in a response. */
const asJson = (value: unknown) => JSON.parse(JSON.stringify(value))

async function expectAsModelled(subject: Subject, query: Partial<Query>): Promise<Page<unknown>> {
  const asked = { ...plain, ...query }
  const page = await subject.read(asked)
  expect(asJson(page), `${subject.name} ${JSON.stringify(asked)}`).toEqual(asJson(pageOfModel(subject.model, asked)))
  return page
}

describe('every list matches the model', () => {
  const sortOf = (fields: string[]) =>
    fc
      .shuffledSubarray(fields)
      .chain(chosen =>
        fc.tuple(...chosen.map(field => fc.constantFrom('asc', 'desc').map(direction => ({ field, direction })))),
      )
  const someOf = (filters: Record<string, fc.Arbitrary<unknown>>) => fc.record(filters, { requiredKeys: [] })

  /** Times of rows, and times just before and after. */
  const timeOf = (times: Date[]) =>
    fc
      .tuple(fc.constantFrom(...times), fc.constantFrom(-1, 0, 0, 1, -60_000, 60_000))
      .map(([time, offMs]) => new Date(time.getTime() + offMs))

  /** Prefixes of any length of existing texts, and some that no text begins with. */
  const prefixOf = (texts: string[]) =>
    fc.oneof(
      {
        weight: 5,
        arbitrary: fc
          .tuple(fc.constantFrom(...texts), fc.integer({ min: 1, max: 40 }))
          .map(([text, length]) => text.slice(0, length)),
      },
      {
        weight: 1,
        arbitrary: fc.constantFrom('%', '_', 'a_', 'T', 'trf_', 'wal_', 'trf_zz', 'trf_0u', 'é', '\\', '￿'),
      },
    )

  /** IDs that some rows have, and texts that no row has. */
  const nameIn = (ids: (string | null)[]) =>
    fc.constantFrom(
      ...new Set(ids.filter(id => id !== null)),
      mintId('hold'),
      mintId('transfer'),
      'batch-1-a',
      'hold-1',
    )

  const pages = { page: fc.nat({ max: 12 }), size: fc.constantFrom(1, 2, 3, 7, 20, 100) }

  async function check(subject: Subject, fields: string[], filters: Record<string, fc.Arbitrary<unknown>>) {
    const query = fc.record({ ...pages, sort: sortOf(fields), filter: someOf(filters) })
    await fc.assert(
      fc.asyncProperty(query, async drawn => void (await expectAsModelled(subject, drawn))),
      // Every run of the tests draws others.
      { seed, numRuns: 250 },
    )
  }

  test('wallets', async () => {
    const { wallets } = busy
    await check(walletList(busy), ['createdAt', 'updatedAt', 'amount', 'status', 'name', 'currency'], {
      status: fc.constantFrom('ACTIVE', 'FROZEN', 'CLOSED'),
      currency: fc.constantFrom('USD', 'EUR', 'JPY', 'CHF'),
      createdFrom: timeOf(wallets.map(createdAt)),
      createdTo: timeOf(wallets.map(createdAt)),
      walletIdPrefix: prefixOf(wallets.map(({ walletId }) => walletId)),
    })
  })

  test('flows', async () => {
    const { walletId } = busy.wallets[0]!
    const flows = busy.flows.get(walletId)!
    await check(flowList(busy, walletId), ['createdAt', 'updatedAt', 'amount', 'status'], {
      direction: fc.constantFrom('IN', 'OUT'),
      type: fc.constantFrom('TRANSFER', 'DEPOSIT', 'WITHDRAWAL'),
      createdFrom: timeOf(flows.map(createdAt)),
      createdTo: timeOf(flows.map(createdAt)),
      transferIdPrefix: prefixOf(flows.map(({ transferId }) => transferId)),
    })
  })

  test.each(['orders', "a wallet's orders"])('%s', async name => {
    const { orders } = busy
    const subject = orderList(busy, name === 'orders' ? undefined : busy.wallets[0]!.walletId)
    await check(subject, ['createdAt', 'updatedAt', 'amount', 'status'], {
      status: fc.constant('COMPLETED'),
      currency: fc.constantFrom('USD', 'USD', 'EUR', 'CHF'),
      createdFrom: timeOf(orders.map(createdAt)),
      createdTo: timeOf(orders.map(createdAt)),
      transferIdPrefix: prefixOf(orders.map(({ transferId }) => transferId)),
      bizIdPrefix: prefixOf(orders.map(({ bizId }) => bizId)),
      reference: fc.constantFrom(...references, 'invoice'),
      holdId: nameIn(orders.map(({ holdId }) => holdId)),
      batchId: nameIn(orders.map(({ batchId }) => batchId)),
      reversesTransferId: nameIn(orders.map(({ reversesTransferId }) => reversesTransferId)),
    })
  })

  test.each(['holds', "a wallet's holds"])('%s', async name => {
    const { holds } = busy
    const subject = holdList(busy, name === 'holds' ? undefined : busy.wallets[0]!.walletId)
    expect(new Set(holds.map(row => row.status))).toEqual(new Set(['OPEN', 'CAPTURED', 'RELEASED', 'EXPIRED']))
    await check(subject, ['createdAt', 'updatedAt', 'amount', 'status'], {
      status: fc.constantFrom('OPEN', 'CAPTURED', 'RELEASED', 'EXPIRED'),
      currency: fc.constantFrom('USD', 'USD', 'EUR', 'CHF'),
      createdFrom: timeOf(holds.map(createdAt)),
      createdTo: timeOf(holds.map(createdAt)),
      reference: fc.constantFrom(...references, 'invoice'),
      bizIdPrefix: prefixOf(holds.map(({ bizId }) => bizId)),
    })
  })
})

describe('pages', () => {
  const middleTime = ({ model }: Subject): Date => model.rows[model.rows.length >> 1].createdAt

  test('the default is newest first, twenty to a page', async () => {
    const { workspaceId } = busy
    const page = await as('service').transfers.list({ workspaceId, caller })
    expect(asJson(page.content)).toEqual(asJson(busy.orders.toReversed().slice(0, 20)))
    expect(page.page.size).toBe(20)
  })

  test('an empty collection has number 0 for any requested page', async () => {
    const { workspaceId } = empty
    const nothing = { content: [], page: { size: 7, number: 0, totalElements: 0, totalPages: 0 } }
    const asked = { workspaceId, caller, size: 7, page: 3 }
    expect(await as('service').wallets.list(asked)).toEqual(nothing)
    expect(await as('service').transfers.list(asked)).toEqual(nothing)
    expect(await as('service').holds.list(asked)).toEqual(nothing)
    const { walletId } = await as('admin').wallets.create({ workspaceId, currency: 'USD', name: 'Empty' })
    expect(await as('service').wallets.flows({ ...asked, walletId })).toEqual(nothing)
    expect(await as('service').transfers.list({ ...asked, walletId })).toEqual(nothing)
    expect(await as('service').holds.list({ ...asked, walletId })).toEqual(nothing)
  })

  test('a filter without matches gives an empty collection', async () => {
    const never = { createdFrom: new Date('2000-01-01'), createdTo: new Date('2000-01-02') }
    for (const subject of allLists(busy))
      for (const direction of ['asc', 'desc'])
        for (const fields of [[], ['createdAt'], ['amount'], ['createdAt', 'amount']])
          for (const filter of [never, { createdFrom: middleTime(subject), createdTo: middleTime(subject) }]) {
            const sort = fields.map(field => ({ field, direction }))
            const { page } = await expectAsModelled(subject, { filter, sort, page: 5 })
            expect(page).toEqual({ size: 20, number: 0, totalElements: 0, totalPages: 0 })
            await expectAsModelled(subject, { filter, sort })
          }
  })

  test('past the last page the content is empty and number is the requested page, up to 2^53-1', async () => {
    const [oldestFirst, byAmount] = [
      { ...newestFirst, direction: 'asc' },
      { field: 'amount', direction: 'asc' },
    ]
    for (const subject of allLists(busy))
      for (const sort of [[], [oldestFirst], [byAmount], [newestFirst, byAmount], [oldestFirst, byAmount]])
        for (const filter of [{}, { createdFrom: new Date('2020-01-01') }, { createdFrom: middleTime(subject) }])
          for (const page of [1000, Number.MAX_SAFE_INTEGER]) {
            const answer = await expectAsModelled(subject, { page, size: 100, sort, filter })
            expect(answer.content).toEqual([])
            expect(answer.page.number).toBe(page)
            expect(answer.page.totalElements).toBeGreaterThan(0)
          }
  })

  test('totalPages includes a last page that is not full', async () => {
    const total = busy.orders.length
    for (const size of [1, 99, 100]) {
      const { page } = await expectAsModelled(orderList(busy), { size })
      expect(page).toEqual({ size, number: 0, totalElements: total, totalPages: Math.ceil(total / size) })
    }
    const wallets = busy.wallets.length
    expect((await walletList(busy).read({ ...plain, size: wallets })).page.totalPages).toBe(1)
    expect((await walletList(busy).read({ ...plain, size: wallets - 1 })).page.totalPages).toBe(2)
  })

  test('in every order, the pages together have every row exactly once', async () => {
    const times = busy.orders.map(({ createdAt }) => createdAt.getTime())
    expect(new Set(times).size, 'bursts share a time').toBeLessThan(times.length)
    for (const subject of allLists(busy))
      for (const field of ['createdAt', 'updatedAt', 'amount', 'status'])
        for (const direction of ['asc', 'desc']) {
          const seen: unknown[] = []
          for (let page = 0, pages = 1; page < pages; page++) {
            const answer = await expectAsModelled(subject, { page, size: 30, sort: [{ field, direction }] })
            seen.push(...answer.content.map(item => JSON.stringify(item)))
            pages = answer.page.totalPages
          }
          expect(new Set(seen).size).toBe(subject.model.rows.length)
          expect(seen.length).toBe(subject.model.rows.length)
        }
  })

  test('a page and its totals are of one snapshot, also during postings', async () => {
    const books = await newBooks()
    await fill(books, ['USD', 'USD'], 1)
    const { workspaceId, wallets } = books
    const { walletId } = wallets[0]!
    let isPosting = true
    let reads = 0
    const post = async () => {
      for (let burst = 1; burst <= 30 || reads < 2; burst++)
        await Promise.all(Array.from({ length: 8 }, (_, at) => order(books, wallets, burst * 8 + at)))
    }
    const posting = post().finally(() => {
      isPosting = false
    })
    const createdFrom = new Date('2020-01-01')
    do {
      const asked = { workspaceId, walletId, caller, size: 1 }
      const [byNumber, byTime, filtered] = await Promise.all([
        as('service').wallets.flows(asked),
        as('service').wallets.flows({ ...asked, filter: { createdFrom } }),
        as('service').wallets.flows({ ...asked, filter: { direction: 'OUT' } }),
      ])
      for (const { content, page } of [byNumber, byTime]) expect(content[0]!.sequence).toBe(page.totalElements)
      expect(filtered.page.totalElements).toBeLessThan(filtered.content[0]?.sequence ?? 1)
      reads++
    } while (isPosting)
    await posting
    expect(reads).toBeGreaterThan(1)
  })
})

describe('filters', () => {
  const total = async (subject: Subject, filter: Record<string, unknown>) =>
    (await expectAsModelled(subject, { filter, size: 100 })).page.totalElements

  test('creation: from is inclusive and to is exclusive, for the time of every row', async () => {
    for (const subject of allLists(busy)) {
      const rows = subject.model.rows as { createdAt: Date }[]
      for (const time of new Set(rows.map(row => row.createdAt.getTime()))) {
        const [at, next] = [new Date(time), new Date(time + 1)]
        const [before, here] = [rows.filter(row => row.createdAt < at), rows.filter(row => +row.createdAt === time)]
        expect(await total(subject, { createdTo: at })).toBe(before.length)
        expect(await total(subject, { createdFrom: at })).toBe(rows.length - before.length)
        expect(await total(subject, { createdFrom: at, createdTo: next })).toBe(here.length)
        expect(await total(subject, { createdFrom: at, createdTo: at })).toBe(0)
        expect(await total(subject, { createdFrom: next, createdTo: at })).toBe(0)
      }
    }
  })

  test('creation: the minimum and maximum of Date', async () => {
    const [first, last] = [new Date(-8.64e15), new Date(8.64e15)]
    for (const subject of allLists(busy)) {
      const all = subject.model.rows.length
      for (const sort of [[], [{ field: 'amount', direction: 'asc' }]]) {
        const count = async (filter: object) => (await subject.read({ ...plain, sort, filter })).page.totalElements
        expect(await count({ createdFrom: first })).toBe(all)
        expect(await count({ createdFrom: first, createdTo: last })).toBe(all)
        expect(await count({ createdFrom: last })).toBe(0)
        expect(await count({ createdTo: first })).toBe(0)
      }
    }
  })

  const starts = (rows: TransferOrder[], start: string) => rows.filter(({ bizId }) => bizId.startsWith(start)).length

  test('bizIdPrefix: % and _ are literal characters', async () => {
    for (const start of ['a_b-', 'axb-']) expect(starts(busy.orders, start)).toBeGreaterThan(0)
    for (const subject of [orderList(busy), orderList(busy, busy.wallets[0]!.walletId)]) {
      const named = (start: string) => starts(subject.model.rows, start)
      expect(await total(subject, { bizIdPrefix: 'a_' })).toBe(named('a_'))
      expect(await total(subject, { bizIdPrefix: 'a_b-' })).toBe(named('a_b-'))
      for (const prefix of ['%', '_', 'a%', '%b', '\\', 'a\\_b', '*', '.', "'"])
        expect(await total(subject, { bizIdPrefix: prefix })).toBe(0)
    }
  })

  test('bizIdPrefix: an order without its own bizId is found by its transferId', async () => {
    const counts = ['t', 'tr', 'trf', 'trf_', 'trf_0'].map(start => starts(busy.orders, start))
    expect(counts, 'each is shared by fewer').toEqual([...new Set(counts)].toSorted((a, b) => b - a))
    for (const subject of [orderList(busy), orderList(busy, busy.wallets[0]!.walletId)]) {
      const unnamed = subject.model.rows.filter(row => row.bizId === row.transferId)
      const named = (start: string) => starts(subject.model.rows, start)
      expect(unnamed.length).toBeGreaterThan(0)
      expect(await total(subject, { bizIdPrefix: 't' })).toBe(named('t'))
      expect(await total(subject, { bizIdPrefix: 'trf' })).toBe(named('trf'))
      expect(await total(subject, { bizIdPrefix: 'trf_' })).toBe(named('trf_'))
      expect(await total(subject, { bizIdPrefix: 'trf_x' })).toBe(named('trf_x'))
      expect(await total(subject, { bizIdPrefix: 'trf_0' })).toBe(unnamed.length)
      expect(await total(subject, { bizIdPrefix: unnamed[0].transferId })).toBe(1)
      expect(await total(subject, { bizIdPrefix: unnamed[0].transferId.toUpperCase() })).toBe(0)
      expect(await total(subject, { bizIdPrefix: `${unnamed[0].transferId}0` })).toBe(0)
    }
  })

  test('transferIdPrefix finds orders with any bizId, and no other kind of ID', async () => {
    const [row] = busy.orders
    expect(await total(orderList(busy), { transferIdPrefix: row!.transferId })).toBe(1)
    expect(await total(orderList(busy), { transferIdPrefix: 'trf_' })).toBe(busy.orders.length)
    for (const prefix of ['wal_', 'x', 'trf-', 'trf_8', 'trf_i'])
      expect(await total(orderList(busy), { transferIdPrefix: prefix })).toBe(0)
  })

  test('reference, holdId, batchId and reversesTransferId select exactly; a malformed ID selects nothing', async () => {
    for (const subject of [orderList(busy), orderList(busy, busy.wallets[0]!.walletId)])
      for (const name of ['reference', 'holdId', 'batchId', 'reversesTransferId'] as const) {
        const orders = subject.model.rows as TransferOrder[]
        const values = new Set(orders.map(row => row[name]).filter(value => value !== null))
        expect(values.size).toBeGreaterThan(0)
        for (const value of values) expect(await total(subject, { [name]: value })).toBeGreaterThan(0)
        const [value] = values
        for (const other of [
          value!.slice(0, -1),
          `${value}0`,
          value!.toUpperCase(),
          mintId('hold'),
          mintId('transfer'),
          '%',
          'hold-1',
        ])
          if (other !== '' && !values.has(other)) expect(await total(subject, { [name]: other })).toBe(0)
      }
  })

  test('a wallet has only orders of its own currency, with any filter', async () => {
    const [dollars] = busy.wallets
    const subject = orderList(busy, dollars!.walletId)
    expect(await total(subject, { currency: 'USD' })).toBe(subject.model.rows.length)
    expect(await total(subject, { currency: 'EUR' })).toBe(0)
    const strange = other.orders[0]!.transferId
    for (const each of [orderList(busy), subject, flowList(busy, dollars!.walletId)])
      expect(await total(each, { transferIdPrefix: strange })).toBe(0)
  })

  test('a direction that a type does not have has no matches', async () => {
    const subject = flowList(busy, busy.wallets[0]!.walletId)
    expect(await total(subject, { type: 'DEPOSIT', direction: 'OUT' })).toBe(0)
    expect(await total(subject, { type: 'WITHDRAWAL', direction: 'IN' })).toBe(0)
    expect(await total(subject, { type: 'DEPOSIT', direction: 'IN' })).toBe(await total(subject, { type: 'DEPOSIT' }))
  })
})

describe('content', () => {
  test('deposits and withdrawals are flows and not orders; EXTERNAL wallets are not visible', async () => {
    const types = new Set([...busy.flows.values()].flat().map(({ type }) => type))
    expect(types).toEqual(new Set(['TRANSFER', 'DEPOSIT', 'WITHDRAWAL']))
    const { content } = await expectAsModelled(walletList(busy), { size: 100 })
    const shown = (content as Wallet[]).map(({ walletId }) => walletId)
    for (const walletId of busy.external) expect(shown).not.toContain(walletId)
    const flows = [...busy.flows.values()].flat()
    for (const { counterpartyWalletId } of flows) expect(busy.external).not.toContain(counterpartyWalletId)
  })

  test('every flow has a unique ID', () => {
    const flows = [...busy.flows.values()].flat()
    expect(new Set(flows.map(({ flowId }) => flowId)).size).toBe(flows.length)
    for (const { flowId, transferId, direction } of flows)
      expect(flowId.slice(4) === transferId.slice(4)).toBe(direction === 'OUT')
  })

  test('W001 for a wallet that is malformed, unknown, of another workspace or EXTERNAL', async () => {
    const { workspaceId } = busy
    const strangers = ['', 'nonsense', mintId('wallet'), mintId('transfer'), other.wallets[0]!.walletId]
    for (const walletId of [...strangers, ...busy.external])
      for (const filter of [{}, { transferIdPrefix: 'trf_' }, { createdFrom: new Date(0) }]) {
        const asked = { workspaceId, walletId, caller, filter }
        const refusal = { cause: { code: 'W001', details: { field: 'walletId' } } }
        await expect(as('service').wallets.flows(asked)).rejects.toMatchObject(refusal)
        await expect(as('service').transfers.list(asked)).rejects.toMatchObject(refusal)
        await expect(as('service').holds.list(asked)).rejects.toMatchObject(refusal)
        const inDollars = { ...asked, filter: { ...filter, currency: 'USD' } }
        await expect(as('service').transfers.list(inDollars)).rejects.toMatchObject(refusal)
      }
  })

  test('GA2032 for an unknown workspace', async () => {
    for (const workspaceId of ['nonsense', mintId('workspace')]) {
      const refusal = { cause: { code: 'GA2032' } }
      await expect(as('service').wallets.list({ workspaceId, caller })).rejects.toMatchObject(refusal)
      await expect(as('service').transfers.list({ workspaceId, caller })).rejects.toMatchObject(refusal)
      await expect(as('service').holds.list({ workspaceId, caller })).rejects.toMatchObject(refusal)
      const filter = { createdTo: new Date() }
      await expect(as('service').transfers.list({ workspaceId, caller, filter })).rejects.toMatchObject(refusal)
    }
  })
})

test('a connection keeps the statements of pages in order of creation, and no others', async () => {
  const client = new pg.Client({ connectionString: database.serviceUrl })
  await client.connect()
  const db: ListDatabase = { read: ({ statement, values }) => run(client, statement, values) }
  const kept = async () => (await client.query('select from pg_prepared_statements')).rowCount
  const by = (...fields: string[]) => fields.map(field => ({ field, direction: 'asc' as const }))
  const { workspaceId } = busy
  for (const _ of [1, 2]) {
    await listWallets(db, workspaceId, plain)
    for (const sort of [by('name'), by('name', 'createdAt'), by('status', 'currency', 'name', 'amount')])
      await listWallets(db, workspaceId, { ...plain, sort })
    await listWallets(db, workspaceId, { ...plain, filter: { currency: 'USD' } })
    expect(await kept()).toBe(1)
  }
  await listFlows(db, workspaceId, busy.wallets[0]!.walletId, plain)
  await listFlows(db, workspaceId, busy.wallets[0]!.walletId, { ...plain, sort: by('createdAt') })
  expect(await kept()).toBe(3)
  await client.end()
})
