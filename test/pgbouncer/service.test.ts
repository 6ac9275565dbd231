/**
 * Three cores behind a PgBouncer that has fewer sessions than they have connections. What they answer, and what they refuse, is the same
 * as without it.
 */
import { randomUUID } from 'node:crypto'
import { afterAll, afterEach, beforeAll, expect, test } from 'vitest'
import { inParallel } from '../../cli/processes/in-parallel.ts'
import { type PgBouncer, startPgBouncer } from '../../cli/processes/pgbouncer.ts'
import { call, createPath } from '../setup/client.ts'
import { connect, createTestDatabase, execute, query, type TestDatabase } from '../setup/database.ts'
import { transferOrder } from '../setup/order.ts'
import { type System, startSystem } from '../setup/system.ts'
import { until } from '../setup/until.ts'
import { verifyLedger } from '../setup/verify.ts'

const poolSize = 2
const smallPools = { 'pool_size=16': `pool_size=${poolSize}`, 'pool_size=8': `pool_size=${poolSize}` }
const pools = 3

let database: TestDatabase
let poolerRoleUrl: string
let pooler: PgBouncer
let system: System
beforeAll(async () => {
  database = await createTestDatabase()
  // As in docs/operations.md.
  const password = randomUUID()
  await execute(
    database.ownerUrl,
    `drop role if exists wallet_pooler; create role wallet_pooler login password '${password}' in role wallet_service`,
  )
  poolerRoleUrl = Object.assign(new URL(database.serviceUrl), { username: 'wallet_pooler', password }).href
  pooler = await startPgBouncer(poolerRoleUrl, { replace: smallPools })
  system = await startSystem({
    database,
    cores: 3,
    gateways: 3,
    oneCorePerGateway: true,
    coreEnvironment: { DATABASE_POOLER_URL: pooler.url, DATABASE_WRITERS: 'postgres,wallet_pooler' },
  })
})
afterAll(async () => {
  await system?.stop()
  await pooler?.stop()
  await database.drop()
})

/** A test that failed leaves no fault to the next one. */
afterEach(async () => {
  pooler.thaw()
  await resetDefaults('wallet_service')
  await resetDefaults('wallet_pooler')
})

type Order = ReturnType<typeof newOrder>
const newOrder = () => ({ bizId: `pooler-${randomUUID()}`, ...transferOrder(system) })

const send = async (at: number, method: 'GET' | 'POST', path: string, body?: object) => {
  const { apiKey, apiSecret, gateways } = system
  const { baseUrl } = { baseUrl: gateways[at % gateways.length]!.url }
  return (await call({ apiKey, apiSecret, baseUrl }, method, path, body)).body
}

/** Sends it again after S002: nothing was done. */
const sendAgain = (at: number, method: 'GET' | 'POST', path: string, body?: object) =>
  until('another answer than S002', async () => {
    const answer = await send(at, method, path, body)
    return answer.code !== 'S002' && answer
  })

const resetDefaults = (role: string) => execute(database.ownerUrl, `alter role ${role} reset all`)

const poolerSessions = async () =>
  (await query(database.ownerUrl, `select from pg_stat_activity where usename = 'wallet_pooler'`)).length

const endPoolerSessions = () =>
  execute(
    database.ownerUrl,
    `select pg_terminate_backend(pid, 10000) from pg_stat_activity where usename = 'wallet_pooler'`,
  )

/** Creates transfers at all cores until it is stopped, each once. Returns what was answered, by bizId. */
function startCustomers(count: number) {
  const answers = new Map<Order, string>()
  let isFinished = false
  const customer = async (_: unknown, at: number) => {
    while (!isFinished) {
      const order = newOrder()
      answers.set(order, (await send(at, 'POST', createPath, order)).code)
    }
  }
  const finished = Promise.all(Array.from({ length: count }, customer))
  return {
    /** Resolves when so many more have been answered with this code. */
    answered: async (code: string, more: number) => {
      const before = countOf(answers, code)
      await until(`${more} more are answered ${code}`, () => countOf(answers, code) >= before + more)
    },
    async stop(): Promise<Map<Order, string>> {
      isFinished = true
      await finished
      return answers
    },
  }
}

const countOf = (answers: Map<Order, string>, code: string) =>
  [...answers.values()].filter(each => each === code).length

/** What was confirmed exists, what was refused does not, and repeated creates make one transfer each. */
async function expectConsistent(answers: Map<Order, string>): Promise<void> {
  const balanceBefore = async () => {
    const { data } = await sendAgain(0, 'GET', `/api/v1/wallets/${system.wallets[1]!.walletId}/balance`)
    return BigInt(data.balance.replace('.', ''))
  }
  const existing = new Set<Order>()
  await inParallel(8, [...answers], async ([order, code]) => {
    const found = (await sendAgain(0, 'GET', `/api/v1/transfer/query/orders/${order.bizId}`)).code
    if (code === '2000') expect(found, order.bizId).toBe('2000')
    else if (code === 'S002') expect(found, order.bizId).toBe('T001')
    else expect(code).toBe('S003')
    if (found === '2000') existing.add(order)
  })
  const before = await balanceBefore()
  await inParallel(8, [...answers.keys()], async order =>
    expect((await sendAgain(1, 'POST', createPath, order)).code).toBe('2000'),
  )
  expect(await balanceBefore()).toBe(before + BigInt(answers.size - existing.size))
  const { ok, violations } = await verifyLedger(system)
  expect({ ok, violations }).toEqual({ ok: true, violations: [] })
  expect(await system.admin.ledger.halted.query()).toEqual({ ledgers: [], total: 0 })
}

test('cores that have more connections than PgBouncer has sessions answer everything', async () => {
  const targets = [
    '/api/v1/wallets?sort=amount,desc',
    '/api/v1/transfer/query/orders?sort=amount,asc&createdFrom=2020-01-01',
    `/api/v1/wallets/${system.wallets[0]!.walletId}/flows`,
    `/api/v1/wallets/${system.wallets[0]!.walletId}/balance`,
    '/api/v1/event/query/events/0?size=100',
  ]
  const customers = startCustomers(12)
  await inParallel(
    24,
    Array.from({ length: 600 }, (_, at) => at),
    async at => expect(await send(at, 'GET', targets[at % targets.length]!)).toMatchObject({ code: '2000' }),
  )
  const answers = await customers.stop()
  expect(new Set(answers.values())).toEqual(new Set(['2000']))
  expect(await poolerSessions()).toBeLessThanOrEqual(poolSize * pools)
  await expectConsistent(answers)
})

const hostileDefaults = [
  `DateStyle = 'German'`,
  `TimeZone = 'Asia/Kathmandu'`,
  'bytea_output = escape',
  'standard_conforming_strings = off',
  'array_nulls = off',
  'extra_float_digits = -15',
  'search_path = pg_temp',
  'default_transaction_read_only = on',
  'default_transaction_isolation = serializable',
  'enable_indexscan = off',
  'synchronous_commit = off',
  `"plpgsql.extra_errors" = 'all'`,
]

test('the settings of the sessions of PgBouncer are those of core, whatever the defaults of its role are', async () => {
  const read = async () => (await sendAgain(0, 'GET', '/api/v1/transfer/query/orders?size=20&sort=createdAt,asc')).data
  const before = await read()
  for (const setting of hostileDefaults) await execute(database.ownerUrl, `alter role wallet_pooler set ${setting}`)
  await endPoolerSessions()
  expect(await read()).toEqual(before)
  const orders = Array.from({ length: 30 }, newOrder)
  const answers = new Map<Order, string>()
  await inParallel(6, orders, async order => {
    answers.set(order, (await sendAgain(answers.size, 'POST', createPath, order)).code)
  })
  expect(new Set(answers.values())).toEqual(new Set(['2000']))
  await resetDefaults('wallet_pooler')
  await expectConsistent(answers)
})

test('the role of the service cannot make the sessions of PgBouncer lose their settings, or end them', async () => {
  const service = await connect(database.serviceUrl)
  try {
    const change = service.query(`alter role wallet_pooler set statement_timeout = '1ms'`)
    await expect(change).rejects.toMatchObject({ code: '42501' })
    await send(0, 'GET', '/api/v1/wallets')
    const end = service.query(`select pg_terminate_backend(pid) from pg_stat_activity where usename = 'wallet_pooler'`)
    await expect(end).rejects.toMatchObject({ code: '42501' })
  } finally {
    await service.end()
  }
})

test('a session of the service role that no core has opened is ended when it blocks postings behind PgBouncer', async () => {
  const service = await connect(database.serviceUrl)
  service.on('error', () => {})
  const ended = new Promise(resolve => service.once('end', resolve))
  await service.query(`set statement_timeout = 0; set transaction_timeout = 0; set idle_in_transaction_session_timeout = 0;
    begin; select lock_ledgers(array(select workspace_id from ledger))`)
  const order = newOrder()
  expect((await sendAgain(0, 'POST', createPath, order)).code).toBe('2000')
  await ended
})

test('a core without PgBouncer beside the others ends none of their sessions', async () => {
  const core = await system.startCore({ DATABASE_POOLER_URL: undefined })
  const gateway = await system.startGateway({ CORE_URL: core.url })
  try {
    const customers = startCustomers(6)
    for (let count = 0; count < 50; count++) {
      const { apiKey, apiSecret } = system
      const { body } = await call({ apiKey, apiSecret, baseUrl: gateway.url }, 'POST', createPath, newOrder())
      expect(body.code).toBe('2000')
    }
    const answers = await customers.stop()
    expect(new Set(answers.values())).toEqual(new Set(['2000']))
    await expectConsistent(answers)
    expect(core.output()).not.toContain('that no core has opened')
  } finally {
    await gateway.stop()
    await core.stop()
    system.gateways.pop()
    system.cores.pop()
  }
})

test('after PgBouncer was killed under load, everything confirmed exists, and everything else can be repeated', async () => {
  const customers = startCustomers(12)
  for (let round = 0; round < 3; round++) {
    await customers.answered('2000', 100)
    await pooler.kill()
    await customers.answered('S002', 10)
    await pooler.restart()
  }
  await customers.answered('2000', 100)
  await expectConsistent(await customers.stop())
})

test('the same after the sessions of PgBouncer were ended under load', async () => {
  const customers = startCustomers(12)
  for (let round = 0; round < 5; round++) {
    await customers.answered('2000', 100)
    await endPoolerSessions()
  }
  await customers.answered('2000', 100)
  await expectConsistent(await customers.stop())
})

test('the same after PgBouncer was frozen under load, and continues with what it has received', async () => {
  const customers = startCustomers(12)
  for (let round = 0; round < 3; round++) {
    await customers.answered('2000', 100)
    pooler.freeze()
    // Core has given up what PgBouncer has received.
    await customers.answered('S002', 10)
    pooler.thaw()
  }
  await customers.answered('2000', 100)
  await expectConsistent(await customers.stop())
})
