/**
 * Between core and PostgreSQL everything fails that can fail, at each point of a batch. Whatever happens, nobody is
 * told what is not so: 2000 stays done, S002 was not done, S003 is said only of what nobody can know, and every bizId
 * comes to exactly one transfer.
 */
import { randomUUID } from 'node:crypto'
import { uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient, domainErrorOf } from '@workspace-wallet/core-client'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chooseSeed, Random } from '../tools/services/random.ts'
import { call, createPath } from './setup/client.ts'
import { execute, query } from './setup/database.ts'
import { type Fault, openPath, type Path } from './setup/path.ts'
import { mountSmallDisk } from './setup/small-disk.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

let system: System
let way: Path
beforeAll(async () => {
  // The first core, for administration, has a way of its own.
  system = await startSystem({ gateways: 0 })
  way = await openPath(Number(new URL(system.database.serviceUrl).port))
  const core = await system.startCore({ DATABASE_URL: way.through(system.database.serviceUrl) })
  await system.startGateway({ CORE_URL: core.url })
})
afterAll(async () => {
  way.cut()
  await system.stop()
})

type Order = { bizId: string; amount: string; sourceWalletId: string; targetWalletId: string; currency: string }

/** A workspace with its key, and two wallets with money. */
async function newBooks() {
  const { admin } = system
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Test' })
  await admin.members.add.mutate({ workspaceId, userId: 'ada' })
  const scopes = ['transfer:create', 'transfer:read', 'wallet:read'] as const
  const key = await admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'ada', scopes: [...scopes] })
  const newWallet = async () => {
    const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'Wallet' })
    await admin.wallets.deposit.mutate({ workspaceId, walletId, amount: '1000.00' })
    return walletId
  }
  const [sourceWalletId, targetWalletId] = [await newWallet(), await newWallet()]
  const credentials = { ...key, baseUrl: system.gateways[0]!.url }
  const order = (amount: string): Order => ({
    bizId: `fault-${randomUUID()}`,
    amount,
    sourceWalletId,
    targetWalletId,
    currency: 'USD',
  })
  return {
    workspaceId,
    targetWalletId,
    order,
    pay: async (asked: Order) => (await call(credentials, 'POST', createPath, asked)).body.code,
    get: async (path: string) => (await call(credentials, 'GET', path)).body,
  }
}
type Books = Awaited<ReturnType<typeof newBooks>>

/** Holds the answers against the books, then asks for each again: now every one has to be done, once. */
async function settle(books: Books, answers: { asked: Order; code: string }[]): Promise<void> {
  const found = async ({ bizId }: Order) => (await books.get(`/api/v1/transfer/query/orders/${bizId}`)).code
  await inParallel(answers, async ({ asked, code }) => {
    const isThere = await found(asked)
    if (code === '2000') expect(isThere, asked.bizId).toBe('2000')
    if (code !== '2000' && code !== 'S003') expect(isThere, asked.bizId).toBe('T001')
  })
  await inParallel(answers, async ({ asked }) => expect(await books.pay(asked)).toBe('2000'))
  const orders = await books.get('/api/v1/transfer/query/orders?size=100')
  expect(orders.data.page.totalElements).toBe(answers.length)
  const cents = answers.reduce((sum, { asked }) => sum + BigInt(asked.amount.replace('.', '')), 100_000n)
  const { data } = await books.get(`/api/v1/wallets/${books.targetWalletId}/balance`)
  expect(BigInt(data.balance.replace('.', ''))).toBe(cents)
}

async function inParallel<Item>(items: readonly Item[], work: (item: Item) => Promise<void>): Promise<void> {
  const left = items.values()
  const workers = Array.from({ length: 16 }, async () => {
    for (const item of left) await work(item)
  })
  await Promise.all(workers)
}

const payAll = (books: Books, orders: Order[]) =>
  Promise.all(orders.map(async asked => ({ asked, code: await books.pay(asked) })))

const begin = 'begin'
const commit = 'commit\0'
const hasCommitted = 'COMMIT\0'

describe('a connection that is lost', () => {
  const points: [string, Omit<Fault, 'by'>, string][] = [
    // Before COMMIT has left, it is certain that nothing was done.
    ['before BEGIN', { in: 'request', at: begin, passes: 'none' }, 'S002'],
    ['in the middle of BEGIN', { in: 'request', at: begin, passes: 'half' }, 'S002'],
    ['while the ledgers are locked', { in: 'request', at: 'lock-ledgers', passes: 'all' }, 'S002'],
    ['before the wallets are answered', { in: 'answer', at: 'CUSTOMER', passes: 'none' }, 'S002'],
    ['in the middle of the wallets', { in: 'answer', at: 'CUSTOMER', passes: 'half' }, 'S002'],
    // Writes and COMMIT leave together: now core looks up what became of them, and answers that.
    ['before the writes', { in: 'request', at: 'write-postings', passes: 'none' }, '2000'],
    ['in the middle of the writes', { in: 'request', at: 'TRANSFER', passes: 'half' }, '2000'],
    ['after the writes, before COMMIT', { in: 'request', at: commit, passes: 'none' }, '2000'],
    ['in the middle of COMMIT', { in: 'request', at: commit, passes: 'half' }, '2000'],
    ['when COMMIT has been sent', { in: 'request', at: commit, passes: 'all' }, '2000'],
    ['when it has committed, before its answer', { in: 'answer', at: hasCommitted, passes: 'none' }, '2000'],
    ['in the middle of its answer', { in: 'answer', at: hasCommitted, passes: 'half' }, '2000'],
  ]
  test.each(points)('%s', async (_, fault, due) => {
    const books = await newBooks()
    const failed = way.fail({ ...fault, by: 'reset' })
    const answers = await payAll(books, ['1.01', '2.02', '3.03', '4.04'].map(books.order))
    await failed
    // What had to wait for the batch that failed came in the next one.
    expect(['2000', due]).toEqual(expect.arrayContaining([...new Set(answers.map(({ code }) => code))]))
    expect(answers.map(({ code }) => code)).toContain(due)
    await settle(books, answers)
  })
})

describe('a connection that freezes', () => {
  test('before the locks are answered: nothing was done', async () => {
    const books = await newBooks()
    const failed = way.fail({ in: 'request', at: 'lock-ledgers', passes: 'half', by: 'freeze' })
    const answers = await payAll(books, [books.order('1.01')])
    await failed
    expect(answers[0]!.code).toBe('S002')
    way.thaw()
    await settle(books, answers)
  })

  test('when it has committed: core looks it up by another connection', async () => {
    const books = await newBooks()
    const failed = way.fail({ in: 'answer', at: hasCommitted, passes: 'none', by: 'freeze' })
    const answers = await payAll(books, [books.order('1.01')])
    await failed
    expect(answers[0]!.code).toBe('2000')
    way.thaw()
    await settle(books, answers)
  })

  test('before COMMIT: its session keeps the lock until PostgreSQL ends it, and nobody is told what is not known', async () => {
    const [books, others] = [await newBooks(), await newBooks()]
    const failed = way.fail({ in: 'request', at: commit, passes: 'none', by: 'freeze' })
    const paying = payAll(books, [books.order('1.01')])
    await failed
    const elsewhere = await payAll(others, [others.order('2.02')])
    const answers = await paying
    expect(['2000', 'S003']).toContain(answers[0]!.code)
    way.thaw()
    await settle(books, answers)
    await settle(others, elsewhere)
  })

  test('before COMMIT, until long after the caller has gone: it is not posted any more', async () => {
    const books = await newBooks()
    const core = createCoreClient({ url: system.cores[1]!.url, token: system.serviceToken })
    const failed = way.fail({ in: 'request', at: commit, passes: 'none', by: 'freeze' })
    // Shorter than the wait for the frozen connection by more than core's grace.
    const { workspaceId } = books
    const asked = books.order('1.01')
    const refused = await core.transfers.create
      .mutate({ workspaceId, caller: { requestId: 'test' }, order: asked, budgetMs: 500 })
      .catch(domainErrorOf)
    await failed
    expect(refused).toMatchObject({ code: 'S002' })
    way.thaw()
    await settle(books, [{ asked, code: 'S002' }])
    await core.close()
  })
})

test('a database that freezes altogether is S002 for reads, and never a wrong answer; it needs no restart', async () => {
  const books = await newBooks()
  const before = await payAll(books, [books.order('1.01')])
  way.freeze()
  const asked = ['1.02', '1.03', '1.04'].map(books.order)
  const [answers, read] = await Promise.all([
    payAll(books, asked),
    books.get(`/api/v1/wallets/${books.targetWalletId}/balance`),
  ])
  expect(answers.map(({ code }) => code)).toEqual(['S002', 'S002', 'S002'])
  expect(read.code).toBe('S002')
  way.thaw()
  await until('it is back', async () => (await books.get('/api/v1/wallets')).code === '2000')
  await settle(books, [...before, ...answers])
})

test('a database that is gone is S002 for all, at once, and back when it is back', async () => {
  const books = await newBooks()
  way.cut()
  const answers = await payAll(books, ['1.01', '1.02'].map(books.order))
  expect(answers.map(({ code }) => code)).toEqual(['S002', 'S002'])
  expect((await books.get('/api/v1/wallets')).code).toBe('S002')
  await way.mend()
  await settle(books, answers)
})

describe('PostgreSQL refuses', () => {
  const owner = () => system.database.ownerUrl

  /** Lets the first writes of a workspace fail with this SQLSTATE, as often as said, while `action` runs. */
  async function withPlanted<Result>(books: Books, sqlState: string, times: number, action: () => Promise<Result>) {
    await execute(
      owner(),
      `create sequence planted;
       create function plant() returns trigger language plpgsql security definer as $$ begin
         if nextval('planted') <= ${times} then raise exception 'planted' using errcode = '${sqlState}'; end if;
         return new;
       end $$;
       create trigger planted before insert on flow for each row
         when (new.workspace_id = '${uuidFromId('workspace', books.workspaceId)}') execute function plant()`,
    )
    try {
      return await action()
    } finally {
      await execute(owner(), 'drop trigger planted on flow; drop function plant; drop sequence planted')
    }
  }
  const always = 1_000_000

  test.each([
    ['a serialization failure', '40001'],
    ['a deadlock', '40P01'],
  ])('%s: the batch is run again, and its clients do not notice', async (_, sqlState) => {
    const books = await newBooks()
    const answers = await withPlanted(books, sqlState, 3, () => payAll(books, [books.order('1.01')]))
    expect(answers[0]!.code).toBe('2000')
    await settle(books, answers)
  })

  test.each([
    ['a serialization failure that does not end', '40001'],
    ['a full disk', '53100'],
    ['too little memory', '53200'],
    ['a statement that takes too long', '57014'],
    ['a lock that is not to be had', '55P03'],
    ['a server that goes down', '57P01'],
  ])('%s is S002, and nothing was done', async (_, sqlState) => {
    const books = await newBooks()
    const orders = ['1.01', '2.02', '3.03'].map(books.order)
    const answers = await withPlanted(books, sqlState, always, () => payAll(books, orders))
    expect(answers.map(({ code }) => code)).toEqual(['S002', 'S002', 'S002'])
    await settle(books, answers)
  })

  test('a posting that the schema refuses fails alone', async () => {
    const [poisoned, sound] = [await newBooks(), await newBooks()]
    const [bad, good] = await withPlanted(poisoned, '23514', always, () =>
      Promise.all([payAll(poisoned, [poisoned.order('1.01')]), payAll(sound, ['1.02', '1.03'].map(sound.order))]),
    )
    expect(bad[0]!.code).toBe('S001')
    expect(good.map(({ code }) => code)).toEqual(['2000', '2000'])
    await settle(poisoned, bad)
    await settle(sound, good)
  })

  test('a deadlock with somebody else: core gives way, and posts', async () => {
    const books = await newBooks()
    const [wallet, workspace] = [uuidFromId('wallet', books.targetWalletId), uuidFromId('workspace', books.workspaceId)]
    const other = new pg.Client({ connectionString: owner() })
    await other.connect()
    // Who waits longest before he looks for a deadlock is not its victim.
    await other.query(`set deadlock_timeout = '30s'; begin; select 1 from wallet where id = '${wallet}' for update`)
    const paying = payAll(books, [books.order('1.01')])
    await until('core waits for the wallet', async () => (await sessionsAtLocks()).length === 1)
    await other.query(`select 1 from ledger where workspace_id = '${workspace}' for update`)
    await other.query('commit')
    await other.end()
    const answers = await paying
    expect(answers[0]!.code).toBe('2000')
    await settle(books, answers)
  })

  test('a ledger that somebody keeps locked: S002 for its workspace, and for nobody else', async () => {
    const [books, others] = [await newBooks(), await newBooks()]
    const other = new pg.Client({ connectionString: owner() })
    await other.connect()
    const isIt = `workspace_id = '${uuidFromId('workspace', books.workspaceId)}'`
    await other.query(`begin; select 1 from ledger where ${isIt} for update`)
    const [answers, elsewhere] = await Promise.all([
      payAll(books, ['1.01', '1.02'].map(books.order)),
      payAll(others, ['2.01', '2.02'].map(others.order)),
    ])
    await other.end()
    expect(answers.map(({ code }) => code)).toEqual(['S002', 'S002'])
    expect(elsewhere.map(({ code }) => code)).toEqual(['2000', '2000'])
    await settle(books, answers)
    await settle(others, elsewhere)
  })

  test('a disk that is really full is S002, and its space makes it well again', async () => {
    const disk = await mountSmallDisk()
    if (!disk) return console.log('disk full: nothing may be mounted here, the planted SQLSTATE 53100 has to do')
    try {
      const books = await newBooks()
      await execute(owner(), `create tablespace small location '${disk.path}'`)
      await execute(owner(), 'alter table flow set tablespace small')
      await disk.fill()
      const answers: { asked: Order; code: string }[] = []
      for (let round = 0; round < 40 && answers.at(-1)?.code !== 'S002'; round++)
        answers.push(
          ...(await payAll(
            books,
            Array.from({ length: 32 }, () => books.order('0.01')),
          )),
        )
      // How many fit into the last page is not ours to say.
      expect(new Set(answers.map(({ code }) => code)).add('2000')).toEqual(new Set(['2000', 'S002']))
      await disk.empty()
      await settle(books, answers)
      await execute(owner(), 'alter table flow set tablespace pg_default')
      await execute(owner(), 'drop tablespace small')
    } finally {
      await disk.unmount()
    }
  })

  function sessionsAtLocks() {
    return query(
      owner(),
      `select pid from pg_stat_activity
       where datname = current_database() and application_name like 'core %' and wait_event_type = 'Lock'`,
    )
  }
})

test('faults at random points under load: every answer holds, and every bizId comes to one transfer', async () => {
  const seed = chooseSeed()
  console.log(`database faults: SEED=${seed}`)
  const random = new Random(seed)
  const workspaces = [await newBooks(), await newBooks()]
  const answers = workspaces.map((): { asked: Order; code: string }[] => [])
  let isLoading = true
  const clients = Array.from({ length: 8 }, async (_, client) => {
    const books = workspaces[client % 2]!
    while (isLoading) answers[client % 2]!.push(...(await payAll(books, [books.order(`0.0${1 + (client % 9)}`)])))
  })
  const places = [begin, 'lock-ledgers', 'load-wallets', 'write-postings', 'TRANSFER', commit]
  const fault = (): Fault =>
    random.chance(0.3)
      ? { in: 'answer', at: hasCommitted, passes: random.pick(['none', 'half', 'all']), by: 'reset' }
      : { in: 'request', at: random.pick(places), passes: random.pick(['none', 'half', 'all']), by: 'reset' }
  for (let count = 0; count < 60; count++) await way.fail(fault())
  isLoading = false
  await Promise.all(clients)
  const codes = new Set(answers.flat().map(({ code }) => code))
  // S003 is for an outcome that core could not look up either, for one fault after the other.
  expect(['2000', 'S002', 'S003'], `seed ${seed}`).toEqual(expect.arrayContaining([...codes]))
  expect(codes).toContain('2000')
  for (const [at, books] of workspaces.entries()) await settle(books, answers[at]!)
})

test('after all of this the verifier finds the ledger sound', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})
