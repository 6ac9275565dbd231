/**
 * Faults between core and PostgreSQL, at each point of a batch. Every answer stays true: after 2000 the transfer exists,
 * after S002 it does not, S003 is for outcomes that cannot be known, and each bizId makes exactly one transfer.
 */
import { randomBytes, randomUUID } from 'node:crypto'
import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient, domainErrorOf } from '@workspace-wallet/core-client'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { inParallel } from '../cli/processes/in-parallel.ts'
import { chooseSeed, Random } from '../cli/processes/random.ts'
import { type Answer, call, createPath } from './setup/client.ts'
import { connect, execute, query } from './setup/database.ts'
import { type Fault, type FaultProxy, startFaultProxy } from './setup/fault-proxy.ts'
import { type LogLine, logLines } from './setup/log-lines.ts'
import { mountSmallDisk } from './setup/small-disk.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'
import { createTenant, createWallet } from './setup/workspaces.ts'

let system: System
let proxy: FaultProxy
beforeAll(async () => {
  // The first core, for administration, connects directly.
  system = await startSystem({ gateways: 0 })
  proxy = await startFaultProxy(Number(new URL(system.database.serviceUrl).port))
  const core = await system.startCore({ DATABASE_URL: proxy.through(system.database.serviceUrl) })
  await system.startGateway({ CORE_URL: core.url })
  // Before its first request, the gateway begins a generation of nonces, which is a transaction of core too.
  const credentials = await createTenant({ admin: system.admin, baseUrl: system.gateways[0]!.url })
  await until('the gateway serves', async () => (await call(credentials, 'GET', '/api/v1/wallets')).status === 200)
})
afterAll(async () => {
  proxy.cut()
  await system.stop()
})

/** A test that failed leaves no fault to the next one. */
afterEach(async () => {
  proxy.thaw()
  await proxy.restore()
})

type Order = { bizId: string; amount: string; sourceWalletId: string; targetWalletId: string; currency: string }

/** A workspace with a key and two funded wallets. */
async function newBooks() {
  const { admin } = system
  const credentials = await createTenant({ admin, baseUrl: system.gateways[0]!.url })
  const { workspaceId } = credentials
  const newWallet = () => createWallet({ admin, workspaceId }, { deposits: ['1000.00'] })
  const [sourceWalletId, targetWalletId] = [await newWallet(), await newWallet()]
  const order = (amount: string): Order => ({
    bizId: `fault-${randomUUID()}`,
    amount,
    sourceWalletId,
    targetWalletId,
    currency: 'USD',
  })
  const pay = async (order: Order) => (await call(credentials, 'POST', createPath, order)).body.code
  const get = async (path: string) => (await call(credentials, 'GET', path)).body
  return {
    workspaceId,
    targetWalletId,
    order,
    pay,
    get,
    /** Sends a create again after S002. Returns the code of the answer. */
    payAgain: (order: Order) =>
      untilAvailable(
        () => pay(order),
        code => code,
      ),
    /** Sends a GET again after S002. */
    getAgain: (path: string) =>
      untilAvailable(
        () => get(path),
        ({ code }) => code,
      ),
  }
}

function untilAvailable<Answer>(ask: () => Promise<Answer>, codeOf: (answer: Answer) => string): Promise<Answer> {
  return until('another answer than S002', async () => {
    const answer = await ask()
    return codeOf(answer) !== 'S002' && answer
  })
}
type Books = Awaited<ReturnType<typeof newBooks>>

/** Arms a fault and sends requests, again if all of them fail with S002 before they cause it. Returns the answers. */
function whileFailing<Answer>(
  fault: Fault,
  send: () => Promise<Answer>,
  codesOf: (answer: Answer) => string[],
): Promise<Answer> {
  let hasFailed = false
  void proxy.fail(fault).then(() => (hasFailed = true))
  return until('the fault happens', async () => {
    const answer = await send()
    if (!hasFailed) expect(new Set(codesOf(answer)), 'without the fault').toEqual(new Set(['S002']))
    return hasFailed && answer
  })
}

const codesOf = (answers: { code: string }[]) => answers.map(({ code }) => code)
const codeOf = ({ body }: Answer) => [body.code]

/** Checks that the answers are true, then retries every transfer: now each one exists, once. */
async function expectConsistent(books: Books, answers: { asked: Order; code: string }[]): Promise<void> {
  const found = async ({ bizId }: Order) => (await books.getAgain(`/api/v1/transfer/query/orders/${bizId}`)).code
  await inParallel(16, answers, async ({ asked, code }) => {
    const foundCode = await found(asked)
    if (code === '2000') expect(foundCode, asked.bizId).toBe('2000')
    if (code !== '2000' && code !== 'S003') expect(foundCode, asked.bizId).toBe('T001')
  })
  await inParallel(16, answers, async ({ asked }) => expect(await books.payAgain(asked)).toBe('2000'))
  const orders = await books.getAgain('/api/v1/transfer/query/orders?size=100')
  expect(orders.data.page.totalElements).toBe(answers.length)
  const cents = answers.reduce((sum, { asked }) => sum + BigInt(asked.amount.replace('.', '')), 100_000n)
  const { data } = await books.getAgain(`/api/v1/wallets/${books.targetWalletId}/balance`)
  expect(BigInt(data.balance.replace('.', ''))).toBe(cents)
}

const payAll = (books: Books, orders: Order[]) =>
  Promise.all(orders.map(async asked => ({ asked, code: await books.pay(asked) })))

/** Of postings only: core also begins other transactions, such as when it opens a connection. */
const begin = 'begin; set local application_name'
const commit = 'commit\0'
const hasCommitted = 'COMMIT\0'

describe('a connection to PostgreSQL is lost', () => {
  const points: [string, Omit<Fault, 'by'>, string][] = [
    // Before COMMIT is sent, it is certain that nothing was done.
    ['before BEGIN', { in: 'request', at: begin, passes: 'none' }, 'S002'],
    ['in the middle of BEGIN', { in: 'request', at: begin, passes: 'half' }, 'S002'],
    ['while the ledgers are locked', { in: 'request', at: 'lock-ledgers', passes: 'all' }, 'S002'],
    ['before the answer with the wallets', { in: 'answer', at: 'CUSTOMER', passes: 'none' }, 'S002'],
    ['in the middle of the answer with the wallets', { in: 'answer', at: 'CUSTOMER', passes: 'half' }, 'S002'],
    // Writes and COMMIT are sent together. From here on, core looks up the outcome.
    ['before the writes', { in: 'request', at: 'post-transfers', passes: 'none' }, '2000'],
    ['in the middle of the writes', { in: 'request', at: 'TRANSFER', passes: 'half' }, '2000'],
    ['after the writes, before COMMIT', { in: 'request', at: commit, passes: 'none' }, '2000'],
    ['in the middle of COMMIT', { in: 'request', at: commit, passes: 'half' }, '2000'],
    ['after COMMIT was sent', { in: 'request', at: commit, passes: 'all' }, '2000'],
    ['after the commit, before its answer', { in: 'answer', at: hasCommitted, passes: 'none' }, '2000'],
    ['in the middle of the answer to COMMIT', { in: 'answer', at: hasCommitted, passes: 'half' }, '2000'],
  ]
  test.each(points)('%s: every answer is true', async (_, fault, expected) => {
    const books = await newBooks()
    const orders = ['1.01', '2.02', '3.03', '4.04'].map(books.order)
    const answers = await whileFailing({ ...fault, by: 'reset' }, () => payAll(books, orders), codesOf)
    // Transfers that waited for the failed batch are in the next one.
    expect(['2000', expected]).toEqual(expect.arrayContaining([...new Set(answers.map(({ code }) => code))]))
    expect(answers.map(({ code }) => code)).toContain(expected)
    await expectConsistent(books, answers)
  })
})

describe('a connection to PostgreSQL is lost while a client creates and freezes a wallet', () => {
  // Together they lose more connections than core's pool for administration has.
  test.each<[string, Omit<Fault, 'by'>, string]>([
    ['while the ledger is locked', { in: 'request', at: 'lock_ledgers', passes: 'all' }, 'S002'],
    ['before the writes', { in: 'request', at: '_wallet', passes: 'none' }, 'S002'],
    // From here on, core looks up the outcome.
    ['before COMMIT', { in: 'request', at: commit, passes: 'none' }, '2000'],
    ['after COMMIT was sent', { in: 'request', at: commit, passes: 'all' }, '2000'],
    ['after the commit, before its answer', { in: 'answer', at: hasCommitted, passes: 'none' }, '2000'],
  ])('%s: every answer is true', async (_, fault, expected) => {
    const { admin } = system
    const scopes = ['wallet:manage' as const]
    const credentials = await createTenant({ admin, baseUrl: system.gateways[0]!.url }, { scopes })
    const { workspaceId } = credentials
    const wallet = { name: 'Main', currency: 'USD', bizId: 'main' }
    const create = () => call(credentials, 'POST', '/api/v1/wallet/command/create', wallet)
    const events = async () =>
      (
        await query(system.database.ownerUrl, 'select type from journal where workspace_id = $1 order by position', [
          uuidFromId('workspace', workspaceId),
        ])
      ).map(({ type }) => type)

    const created = await whileFailing({ ...fault, by: 'reset' }, create, codeOf)
    expect(created.body.code).toBe(expected)
    expect(await events()).toEqual(expected === '2000' ? ['wallet.created'] : [])
    const { walletId } = (await create()).body.data
    const freeze = () =>
      call(credentials, 'POST', '/api/v1/wallet/command/change-status', { walletId, status: 'FROZEN' })
    const frozen = await whileFailing({ ...fault, by: 'reset' }, freeze, codeOf)
    expect(frozen.body.code).toBe(expected)
    expect(await events()).toHaveLength(expected === '2000' ? 2 : 1)
    expect((await freeze()).body.data).toMatchObject({ walletId, status: 'FROZEN' })
    expect(await events()).toEqual(['wallet.created', 'wallet.frozen'])
  })
})

describe('a connection to PostgreSQL is lost while a client uses holds, batches and reversals', () => {
  test.each<[string, Omit<Fault, 'by'>, string]>([
    ['while the ledger is locked', { in: 'request', at: 'lock-ledgers', passes: 'all' }, 'S002'],
    ['while wallets are read', { in: 'request', at: 'load-wallets', passes: 'half' }, 'S002'],
    // From here on, core looks up the outcome.
    ['before COMMIT', { in: 'request', at: commit, passes: 'none' }, '2000'],
    ['after COMMIT was sent', { in: 'request', at: commit, passes: 'all' }, '2000'],
    ['after the commit, before its answer', { in: 'answer', at: hasCommitted, passes: 'none' }, '2000'],
  ])('%s: each command has its effect once, and every answer is true', async (_, fault, expected) => {
    const { admin } = system
    const credentials = await createTenant({ admin, baseUrl: system.gateways[0]!.url })
    const { workspaceId } = credentials
    const source = await createWallet({ admin, workspaceId }, { deposits: ['100.00'] })
    const target = await createWallet({ admin, workspaceId })
    const events = async () =>
      (await call(credentials, 'GET', '/api/v1/event/query/events/0')).body.data.content.map(
        ({ type }: { type: string }) => type,
      )

    /** Sends a command during the fault and again. Returns the record that the second answer contains. */
    const send = async (path: string, body: object) => {
      const before = (await events()).length
      const command = () => call(credentials, 'POST', `/api/v1/${path}`, body)
      const first = await whileFailing({ ...fault, by: 'reset' }, command, codeOf)
      expect(first.body.code, path).toBe(expected)
      if (expected !== '2000') expect(await events(), path).toHaveLength(before)
      const again = await untilAvailable(command, ({ body }) => body.code)
      expect(again.body.code, path).toBe('2000')
      if (expected === '2000') expect(again.body.data, path).toEqual(first.body.data)
      return again.body.data
    }
    const hold = (bizId: string) => ({
      walletId: source,
      amount: '30.00',
      currency: 'USD',
      expiresInSeconds: 3600,
      bizId,
    })
    const draw = {
      sourceWalletId: source,
      targetWalletId: target,
      amount: '10.00',
      currency: 'USD',
      holdId: 'captured',
    }
    const reversal = { amount: '4.00', currency: 'USD' }

    await send('hold/command/create', hold('captured'))
    await send('hold/command/create', hold('released'))
    await send('transfer/command/batch', {
      transfers: [
        { ...draw, bizId: 'part', holdRemainder: 'KEEP' },
        { ...reversal, reversesTransferId: 'part', bizId: 'reversal-1' },
      ],
    })
    await send('transfer/command/create', { ...draw, bizId: 'rest' })
    await send('transfer/command/reverse', { ...reversal, reversesTransferId: 'part', bizId: 'reversal-2' })
    expect(await send('hold/command/release', { holdId: 'released' })).toMatchObject({ status: 'RELEASED' })

    const { data } = (await call(credentials, 'GET', `/api/v1/wallets/${source}/balance`)).body
    expect(data).toMatchObject({ balance: '88.00', held: '0.00' })
    const [wallet, transfer] = ['wallet.created', 'transfer.completed']
    const holds = ['hold.created', 'hold.created']
    const [deposited, released] = ['wallet.deposited', 'hold.released']
    expect(await events()).toEqual([
      wallet,
      deposited,
      wallet,
      ...holds,
      ...Array.from({ length: 4 }, () => transfer),
      released,
    ])
  })
})

describe('a connection to PostgreSQL freezes', () => {
  test('before the answer with the locks: S002, and nothing was done', async () => {
    const books = await newBooks()
    const orders = [books.order('1.01')]
    const fault = { in: 'request', at: 'lock-ledgers', passes: 'half', by: 'freeze' } as const
    const answers = await whileFailing(fault, () => payAll(books, orders), codesOf)
    expect(answers[0]!.code).toBe('S002')
    proxy.thaw()
    await expectConsistent(books, answers)
  })

  test('after the commit: core looks up the outcome on another connection', async () => {
    const books = await newBooks()
    const orders = [books.order('1.01')]
    const fault = { in: 'answer', at: hasCommitted, passes: 'none', by: 'freeze' } as const
    const answers = await whileFailing(fault, () => payAll(books, orders), codesOf)
    expect(answers[0]!.code).toBe('2000')
    proxy.thaw()
    await expectConsistent(books, answers)
  })

  test('before COMMIT: the session keeps its locks until PostgreSQL ends it, and every answer is true', async () => {
    const [books, others] = [await newBooks(), await newBooks()]
    const failed = proxy.fail({ in: 'request', at: commit, passes: 'none', by: 'freeze' })
    const orders = [books.order('1.01')]
    let paying = payAll(books, orders)
    await until('the connection freezes', async () => {
      const hasFailed = await Promise.race([failed.then(() => true), paying.then(() => false)])
      // S002 before core has sent anything.
      if (!hasFailed) paying = payAll(books, orders)
      return hasFailed
    })
    const elsewhere = await payAll(others, [others.order('2.02')])
    const answers = await paying
    expect(['2000', 'S003']).toContain(answers[0]!.code)
    proxy.thaw()
    await expectConsistent(books, answers)
    await expectConsistent(others, elsewhere)
  })

  test('before COMMIT, until after the deadline of the caller: S002, and the transfer is not posted later', async () => {
    const books = await newBooks()
    const core = createCoreClient({ url: system.cores[1]!.url, token: system.serviceToken })
    const failed = proxy.fail({ in: 'request', at: commit, passes: 'none', by: 'freeze' })
    // The deadline passes long before core gives up the frozen connection.
    const { workspaceId } = books
    const asked = books.order('1.01')
    const error = await core.transfers.create
      .mutate({ workspaceId, caller: { requestId: 'test' }, order: asked, budgetMs: 500 })
      .catch(domainErrorOf)
    await failed
    expect(error).toMatchObject({ code: 'S002' })
    proxy.thaw()
    await expectConsistent(books, [{ asked, code: 'S002' }])
    await core.close()
  })
})

test('while the database is frozen, no transfer succeeds and reads fail with S002; afterwards core recovers by itself', async () => {
  const books = await newBooks()
  const before = await payAll(books, [books.order('1.01')])
  proxy.freeze()
  const asked = ['1.02', '1.03', '1.04'].map(books.order)
  const [answers, read] = await Promise.all([
    payAll(books, asked),
    books.get(`/api/v1/wallets/${books.targetWalletId}/balance`),
  ])
  // Core posts to a ledger that it remembers with one message, COMMIT included: then the outcome is unknown.
  for (const { code } of answers) expect(['S002', 'S003']).toContain(code)
  expect(read.code).toBe('S002')
  proxy.thaw()
  await until('core answers again', async () => (await books.get('/api/v1/wallets')).code === '2000')
  await expectConsistent(books, [...before, ...answers])
})

test('while the database is down, requests fail with S002; afterwards core recovers by itself', async () => {
  const books = await newBooks()
  proxy.cut()
  const answers = await payAll(books, ['1.01', '1.02'].map(books.order))
  expect(answers.map(({ code }) => code)).toEqual(['S002', 'S002'])
  expect((await books.get('/api/v1/wallets')).code).toBe('S002')
  await proxy.restore()
  await expectConsistent(books, answers)
})

test('if the database is down after a commit, S003 names the transferId', async () => {
  const books = await newBooks()
  const core = createCoreClient({ url: system.cores[1]!.url, token: system.serviceToken })
  const { workspaceId } = books
  const transferId = mintId('transfer')
  const asked = books.order('1.01')
  const failed = proxy.fail({ in: 'answer', at: hasCommitted, passes: 'none', by: 'reset' }).then(() => proxy.cut())
  const error = await core.transfers.create
    .mutate({ workspaceId, caller: { requestId: 'test' }, order: asked, transferId })
    .catch(domainErrorOf)
  await failed
  expect(error).toMatchObject({ code: 'S003', details: { transferId } })
  await proxy.restore()
  await expectConsistent(books, [{ asked, code: 'S003' }])
  await core.close()
})

describe('PostgreSQL reports', () => {
  const owner = () => system.database.ownerUrl

  /** Makes the first `times` writes of a workspace fail with this SQLSTATE while `action` runs. */
  async function withError<Result>(books: Books, sqlState: string, times: number, action: () => Promise<Result>) {
    await execute(
      owner(),
      `create sequence planned_errors;
       create function fail_as_planned() returns trigger language plpgsql security definer as $$ begin
         if nextval('public.planned_errors') <= ${times} then raise exception 'planned' using errcode = '${sqlState}'; end if;
         return new;
       end $$;
       create trigger fail_as_planned before insert on transfer for each row
         when (new.workspace_id = '${uuidFromId('workspace', books.workspaceId)}') execute function fail_as_planned()`,
    )
    try {
      return await action()
    } finally {
      await execute(
        owner(),
        'drop trigger fail_as_planned on transfer; drop function fail_as_planned; drop sequence planned_errors',
      )
    }
  }
  const always = 1_000_000

  test.each([
    ['a serialization failure', '40001'],
    ['a deadlock', '40P01'],
  ])('%s: core runs the batch again, and its transfers succeed', async (_, sqlState) => {
    const books = await newBooks()
    const answers = await withError(books, sqlState, 3, () => payAll(books, [books.order('1.01')]))
    expect(answers[0]!.code).toBe('2000')
    await expectConsistent(books, answers)
  })

  test.each([
    ['a serialization failure every time', '40001'],
    ['a full disk', '53100'],
    ['out of memory', '53200'],
    ['a statement timeout', '57014'],
    ['a lock timeout', '55P03'],
    ['a shutdown', '57P01'],
  ])('%s: S002, and nothing was done', async (_, sqlState) => {
    const books = await newBooks()
    const orders = ['1.01', '2.02', '3.03'].map(books.order)
    const answers = await withError(books, sqlState, always, () => payAll(books, orders))
    expect(answers.map(({ code }) => code)).toEqual(['S002', 'S002', 'S002'])
    await expectConsistent(books, answers)
  })

  test('a constraint violation: only the posting that caused it fails', async () => {
    const [failing, working] = [await newBooks(), await newBooks()]
    const [bad, good] = await withError(failing, '23514', always, () =>
      Promise.all([payAll(failing, [failing.order('1.01')]), payAll(working, ['1.02', '1.03'].map(working.order))]),
    )
    expect(bad[0]!.code).toBe('S001')
    expect(good.map(({ code }) => code)).toEqual(['2000', '2000'])
    await expectConsistent(failing, bad)
    await expectConsistent(working, good)
  })

  test('a deadlock with another session: core retries, and the transfer succeeds', async () => {
    const books = await newBooks()
    const [wallet, workspace] = [uuidFromId('wallet', books.targetWalletId), uuidFromId('workspace', books.workspaceId)]
    const other = await connect(owner())
    // The session that checks for deadlocks later is not the one that PostgreSQL cancels.
    await other.query(`set deadlock_timeout = '30s'`)
    const order = books.order('1.01')
    // PostgreSQL checks once, after core has waited for a second. If this process is slower, the lock times out: S002.
    const answers = await until('a deadlock', async () => {
      await other.query(`begin; select 1 from wallet where id = '${wallet}' for update`)
      let isAnswered = false
      const paying = payAll(books, [order]).finally(() => (isAnswered = true))
      await until('core waits for the wallet', async () => isAnswered || (await sessionsAtLocks()).length === 1)
      await other.query(`select 1 from ledger where workspace_id = '${workspace}' for update`)
      await other.query('commit')
      const answers = await paying
      return answers[0]!.code !== 'S002' && answers
    })
    await other.end()
    expect(answers[0]!.code).toBe('2000')
    await expectConsistent(books, answers)
  })

  test('a ledger that another session keeps locked: S002 for its workspace only', async () => {
    const [books, others] = [await newBooks(), await newBooks()]
    const other = await connect(owner())
    const isLedger = `workspace_id = '${uuidFromId('workspace', books.workspaceId)}'`
    await other.query(`begin; select 1 from ledger where ${isLedger} for update`)
    const [answers, elsewhere] = await Promise.all([
      payAll(books, ['1.01', '1.02'].map(books.order)),
      // Their batch may come after two others that wait for the lock, and so too late on a busy machine.
      payAll({ ...others, pay: others.payAgain }, ['2.01', '2.02'].map(others.order)),
    ])
    await other.end()
    expect(answers.map(({ code }) => code)).toEqual(['S002', 'S002'])
    expect(elsewhere.map(({ code }) => code)).toEqual(['2000', '2000'])
    await expectConsistent(books, answers)
    await expectConsistent(others, elsewhere)
  })

  test('a full disk: S002, until there is space again', async () => {
    const disk = await mountSmallDisk()
    if (!disk)
      return console.log('disk full: this user may not mount a disk; only the planned SQLSTATE 53100 is tested')
    try {
      const books = await newBooks()
      await execute(owner(), `create tablespace small location '${disk.path}'`)
      await execute(owner(), 'alter table transfer set tablespace small')
      await disk.fill()
      const answers: { asked: Order; code: string }[] = []
      for (let round = 0; round < 40 && answers.at(-1)?.code !== 'S002'; round++)
        answers.push(
          ...(await payAll(
            books,
            Array.from({ length: 32 }, () => books.order('0.01')),
          )),
        )
      // Some transfers may still fit into the last page.
      expect(new Set(answers.map(({ code }) => code)).add('2000')).toEqual(new Set(['2000', 'S002']))
      await disk.empty()
      await expectConsistent(books, answers)
      await execute(owner(), 'alter table transfer set tablespace pg_default')
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

test('after faults at random points under load, every answer is true, and each bizId makes one transfer', async () => {
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
  const triggers = [begin, 'lock-ledgers', 'load-wallets', 'post-transfers', 'TRANSFER', commit]
  const fault = (): Fault =>
    random.chance(0.3)
      ? { in: 'answer', at: hasCommitted, passes: random.pick(['none', 'half', 'all']), by: 'reset' }
      : { in: 'request', at: random.pick(triggers), passes: random.pick(['none', 'half', 'all']), by: 'reset' }
  for (let count = 0; count < 60; count++) await proxy.fail(fault())
  isLoading = false
  await Promise.all(clients)
  const codes = new Set(answers.flat().map(({ code }) => code))
  // S003 when the look-ups of the outcome fail, too.
  expect(['2000', 'S002', 'S003'], `seed ${seed}`).toEqual(expect.arrayContaining([...codes]))
  expect(codes).toContain('2000')
  for (const [at, books] of workspaces.entries()) await expectConsistent(books, answers[at]!)
})

test('the ledger is sound after these tests', async () => {
  expect(await verifyLedger(system)).toMatchObject({ ok: true, violations: [] })
})

test('a core that starts while its database is unavailable checks its key-encryption keys as soon as it is', async () => {
  proxy.cut()
  const core = await system.startCore({
    DATABASE_URL: proxy.through(system.database.serviceUrl),
    KEY_ENCRYPTION_KEYS: `other:${randomBytes(32).toString('base64')}`,
  })
  await proxy.restore()
  const isFault = ({ level, msg }: LogLine) => level === 50 && msg.startsWith('KEY_ENCRYPTION_KEYS lacks k1')
  await until('the fault is logged', () => logLines(core).some(isFault))
  await core.stop()
})
