import { randomUUID } from 'node:crypto'
import { Decimal, type Flow, type Id, idFromUuid, mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { chooseSeed, Random } from '../../../../cli/processes/random.ts'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect } from '../../../../test/setup/database.ts'
import { moveTransfersToPast } from '../../../../test/setup/past.ts'
import { until } from '../../../../test/setup/until.ts'
import { ListReader } from '../database/lists/list-reader.ts'
import { sumOut } from './past-balances.ts'

/** Statements and past balances, compared with the lists of flows of the same times. */
const seed = chooseSeed()
console.log(`statements: SEED=${seed}`)
const random = new Random(seed)

const caller = { requestId: 'test' }
const dayMs = 86_400_000
let testCore: TestCore
let workspaceId: string
/** The flows of each wallet, in order. The last wallet has none. */
const flows = new Map<string, Flow[]>()
const wallets = () => [...flows.keys()]
const service = () => testCore.as('service')

beforeAll(async () => {
  testCore = await openTestCore()
  const admin = testCore.as('admin')
  workspaceId = (await admin.workspaces.create({ name: 'Test' })).workspaceId
  for (const currency of ['USD', 'USD', 'USD', 'JPY'])
    flows.set((await admin.wallets.create({ workspaceId, currency, name: currency })).walletId, [])
  const payers = wallets().slice(0, 3)
  for (const walletId of payers)
    await admin.wallets.deposit({ workspaceId, walletId, amount: '1000.00', bizId: randomUUID() })
  for (let burst = 0; burst < 25; burst++)
    await Promise.all(Array.from({ length: 1 + random.int(12) }, () => post(payers)))
  await moveTransfersToPast(testCore.database.ownerUrl, workspaceId)
  for (const walletId of wallets()) flows.set(walletId, await listFlows(walletId, {}))
})
afterAll(() => testCore.close())

/** A transfer, or now and then a deposit or a withdrawal. */
function post(payers: string[]): Promise<unknown> {
  const amount = random.pick(['1', '1.50', '0.01', '3.25'])
  const [sourceWalletId, targetWalletId] = random.shuffled(payers) as [string, string]
  const funding = { workspaceId, walletId: sourceWalletId, amount }
  const chosen = random.next()
  if (chosen < 0.1) return testCore.as('admin').wallets.deposit({ ...funding, bizId: randomUUID() })
  if (chosen < 0.2) return testCore.as('admin').wallets.withdraw({ ...funding, bizId: randomUUID() })
  const order = { sourceWalletId, targetWalletId, amount, currency: 'USD' }
  return service().transfers.create({ workspaceId, caller, order })
}

/** All flows that the list shows with this filter, oldest first. */
async function listFlows(walletId: string, filter: { createdFrom?: Date; createdTo?: Date }): Promise<Flow[]> {
  const listed: Flow[] = []
  for (let page = 0; ; page++) {
    const sort = [{ field: 'createdAt' as const, direction: 'asc' as const }]
    const call = { workspaceId, walletId, caller, filter, sort, size: 100, page }
    const { content, page: totals } = await service().wallets.flows(call)
    listed.push(...content)
    if (listed.length === totals.totalElements) return listed
  }
}

const statementOf = (walletId: string, from: Date, to: Date) =>
  service().wallets.statement({ workspaceId, walletId, caller, from, to })
const balanceAt = (walletId: string, at: Date) => service().wallets.balanceAt({ workspaceId, walletId, caller, at })
const sumOf = (of: Flow[], direction: Flow['direction']) =>
  Decimal.sum(0, ...of.filter(flow => flow.direction === direction).map(({ amount }) => amount))

/** A time at or next to a flow, or far from all flows. */
function anyTime(): Date {
  const all = [...flows.values()].flat()
  const near = random.pick(all).createdAt.getTime() + random.int(3) - 1
  const wide = Date.now() - 40_000 - random.int(4 * 3_600_000)
  return new Date(random.chance(0.8) ? near : wide)
}

test('a statement equals the list of flows of the same times, to the unit, and opening + in − out = closing', async () => {
  for (let round = 0; round < 150; round++) {
    const walletId = random.pick(wallets())
    const [from, to] = [anyTime(), anyTime()].toSorted((a, b) => a.getTime() - b.getTime()) as [Date, Date]
    const statement = await statementOf(walletId, from, to)
    const lines = await listFlows(walletId, { createdFrom: from, createdTo: to })
    const before = flows.get(walletId)!.filter(({ createdAt }) => createdAt < from)
    const place = `${walletId} ${from.toISOString()} ${to.toISOString()}`
    expect(statement, place).toEqual({
      walletId,
      currency: walletId === wallets()[3] ? 'JPY' : 'USD',
      from,
      to,
      opening: new Decimal(before.at(-1)?.balanceAfter ?? 0),
      closing: new Decimal(lines.at(-1)?.balanceAfter ?? before.at(-1)?.balanceAfter ?? 0),
      totalIn: sumOf(lines, 'IN'),
      totalOut: sumOf(lines, 'OUT'),
      flowCount: lines.length,
      firstSequence: lines[0]?.sequence ?? null,
      lastSequence: lines.at(-1)?.sequence ?? null,
    })
    const { opening, closing, totalIn, totalOut } = statement
    expect(opening.plus(totalIn).minus(totalOut).equals(closing), place).toBe(true)
    expect((await balanceAt(walletId, from)).balance, place).toEqual(opening)
    expect(await balanceAt(walletId, to), place).toEqual({
      walletId,
      currency: statement.currency,
      at: to,
      balance: closing,
      sequence: statement.lastSequence ?? before.length,
    })
  }
})

test('before the first flow, and before the wallet, the balance and its sequence are 0', async () => {
  const zero = { balance: new Decimal(0), sequence: 0 }
  for (const walletId of wallets())
    for (const at of [new Date(flows.get(walletId)![0]?.createdAt ?? 0), new Date(0), new Date('0000-01-01')])
      expect(await balanceAt(walletId, at)).toMatchObject(zero)
})

test('from equal to to is an empty statement, in which opening is closing', async () => {
  const [walletId] = wallets() as [string]
  const at = flows.get(walletId)!.at(-1)!.createdAt
  const { opening, closing, ...rest } = await statementOf(walletId, at, at)
  expect(closing).toEqual(opening)
  expect(rest).toMatchObject({ flowCount: 0, firstSequence: null, lastSequence: null, totalIn: new Decimal(0) })
})

test('the lines of a statement come in order and in parts, and none for wallets of others', async () => {
  const [walletId] = wallets() as [string]
  const all = flows.get(walletId)!
  const read = (of: string, after: number, upTo: number) =>
    service().wallets.flowsAfter({ workspaceId, walletId: of, caller, after, upTo })
  expect((await read(walletId, 0, all.length)).content).toEqual(all)
  expect((await read(walletId, 3, 7)).content).toEqual(all.slice(3, 7))
  expect((await read(walletId, 7, 7)).content).toEqual([])
  const [external] = (await connectedQuery(`select id from wallet where kind = 'EXTERNAL' limit 1`)) as [
    { id: Uuid<'wallet'> },
  ]
  for (const foreign of [idFromUuid('wallet', external.id), mintId('wallet'), 'nonsense'])
    expect((await read(foreign, 0, 100)).content).toEqual([])
})

async function connectedQuery(sql: string): Promise<unknown[]> {
  const client = await connect(testCore.database.ownerUrl)
  try {
    return (await client.query(sql)).rows
  } finally {
    await client.end()
  }
}

describe('refusals, in order', () => {
  const fault = (field: string, reason: string, limit?: unknown) => ({
    code: 'S012',
    details: { field, reason, limit: limit ?? expect.stringMatching(/Z$/) },
  })
  const past = (ms: number) => new Date(Date.now() - ms)

  test('a time less than 30 seconds ago is S012 with the latest time, also for an unknown wallet', async () => {
    for (const walletId of [wallets()[0]!, mintId('wallet'), 'nonsense']) {
      for (const ms of [10_000, 0, -1_000, -dayMs]) {
        await expect(balanceAt(walletId, past(ms))).rejects.toMatchObject({ cause: fault('at', 'TOO_LARGE') })
        await expect(statementOf(walletId, past(dayMs), past(ms))).rejects.toMatchObject({
          cause: fault('to', 'TOO_LARGE'),
        })
      }
      await expect(balanceAt(walletId, new Date('9999-12-31'))).rejects.toMatchObject({
        cause: fault('at', 'TOO_LARGE'),
      })
    }
    const error = await balanceAt(wallets()[0]!, new Date()).catch(error => error)
    const latest = new Date(error.cause.details.limit)
    expect((await balanceAt(wallets()[0]!, latest)).at).toEqual(latest)
  })

  test('from after to, and more than 400 days, are S012; then W001', async () => {
    const to = new Date('2026-06-01T00:00:00.000Z')
    const before = (days: number, ms = 0) => new Date(to.getTime() - days * dayMs - ms)
    for (const walletId of [wallets()[0]!, 'nonsense']) {
      await expect(statementOf(walletId, new Date(to.getTime() + 1), to)).rejects.toMatchObject({
        cause: fault('from', 'TOO_LARGE', to.toISOString()),
      })
      await expect(statementOf(walletId, before(400, 1), to)).rejects.toMatchObject({
        cause: fault('from', 'TOO_SMALL', before(400).toISOString()),
      })
    }
    expect((await statementOf(wallets()[0]!, before(400), to)).flowCount).toBe(0)
    for (const walletId of [mintId('wallet'), 'nonsense', wallets()[0]!.toUpperCase()]) {
      await expect(statementOf(walletId, before(1), to)).rejects.toMatchObject({ cause: { code: 'W001' } })
      await expect(balanceAt(walletId, to)).rejects.toMatchObject({ cause: { code: 'W001' } })
    }
  })

  test('totals of too many flows are S012 TOO_EXPENSIVE', async () => {
    const pool = new pg.Pool({
      connectionString: testCore.database.serviceUrl,
      max: 5,
      pipeline: true,
    } as pg.PoolConfig)
    pool.on('error', () => {})
    const owner = await connect(testCore.database.ownerUrl)
    await owner.query('begin; lock table transfer in access exclusive mode')
    const reader = new ListReader(pool, 5, { shortMs: 10, longMs: 20 })
    const [walletId] = wallets() as [Id<'wallet'>]
    const of = { workspace: uuidFromId('workspace', workspaceId)!, wallet: uuidFromId('wallet', walletId) }
    const summed = sumOut(reader, of, { after: 0, upTo: 10 })
    await expect(summed).rejects.toMatchObject(fault('from', 'TOO_EXPENSIVE', 0.02))
    await owner.end()
    await pool.end()
  })
})

test('an answer waits for a transaction in progress that has posted before its time', async () => {
  const { workspaceId: workspace } = await testCore.as('admin').workspaces.create({ name: 'Slow' })
  const walletId = (await testCore.as('admin').wallets.create({ workspaceId: workspace, currency: 'USD', name: 'A' }))
    .walletId
  await testCore.as('admin').wallets.deposit({ workspaceId: workspace, walletId, amount: '1.00', bizId: randomUUID() })
  const posting = await connect(testCore.database.ownerUrl)
  const values = [uuidFromId('workspace', workspace), uuidFromId('wallet', walletId)]
  // The ledger was last posted to an hour ago. A commit of that time takes until now, for example because a standby is away.
  await posting.query(`set session_replication_role = replica`)
  await posting.query(
    `update ledger set last_posted_at = now() - interval '1 hour' where workspace_id = $1`,
    values.slice(0, 1),
  )
  await posting.query(
    `update transfer set created_at = now() - interval '2 hours' where workspace_id = $1`,
    values.slice(0, 1),
  )
  await posting.query('begin')
  await posting.query('select from ledger where workspace_id = $1 for no key update', values.slice(0, 1))
  await posting.query(
    `insert into transfer select (jsonb_populate_record(t, jsonb_build_object('id', gen_random_uuid(), 'biz_id', null, 'position', position + 1,
       'target_sequence', 2, 'source_sequence', 2, 'target_balance', 2, 'created_at', now() - interval '1 hour'))).*
     from transfer t where workspace_id = $1`,
    values.slice(0, 1),
  )
  await posting.query('update wallet set sequence = 2 where workspace_id = $1 and id = $2', values)

  const at = new Date(Date.now() - 60_000)
  const call = { workspaceId: workspace, walletId, caller }
  // What was posted before an earlier time is certain.
  const earlier = new Date(Date.now() - 90 * 60_000)
  expect(await service().wallets.balanceAt({ ...call, at: earlier })).toMatchObject({ sequence: 1 })
  let isAnswered = false
  const answer = service()
    .wallets.balanceAt({ ...call, at })
    .finally(() => {
      isAnswered = true
    })
  const waiting = `select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  await until('the read waits for the ledger', async () => (await connectedQuery(waiting)).length > 0)
  expect(isAnswered).toBe(false)
  await posting.query('commit')
  expect(await answer).toMatchObject({ balance: new Decimal(2), sequence: 2 })
  await posting.end()
})
