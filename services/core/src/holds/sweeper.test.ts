import { randomUUID } from 'node:crypto'
import { type Uuid, uuidFromId } from '@workspace-wallet/contract'
import type { Client } from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect, execute, query } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'
import { run } from '../database/statement.ts'
import type { LedgerRequest } from '../ledger/decide/requests.ts'
import { findDueHolds } from '../ledger/store/queries.ts'
import { expiryDelayStatement } from './figures.ts'
import { findDueStatement, sweepDueHolds } from './sweeper.ts'

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

const caller = { requestId: 'test' }

/** How many blocks a statement reads, with its parameters as literals. */
async function blocksOf({ text }: { text: string }, seconds = 600): Promise<number> {
  const sql = `explain (analyze, buffers, format json) ${text.replace('$1', String(seconds)).replace('$2', `'{}'`)}`
  const [row] = await query(testCore.database.ownerUrl, sql)
  const plan = (row!['QUERY PLAN'] as { Plan: Record<string, number> }[])[0]!.Plan
  return plan['Shared Hit Blocks']! + plan['Shared Read Blocks']!
}

test('neither open holds nor the due ones of closed workspaces make a sweep slower', async () => {
  const { workspaceId } = await testCore.as('admin').workspaces.create({ name: 'Test' })
  const { walletId } = await testCore.as('admin').wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  await testCore.as('admin').wallets.deposit({ workspaceId, walletId, amount: '100', bizId: randomUUID() })
  const hold = { walletId, amount: '1', currency: 'USD', expiresInSeconds: 3600, bizId: 'first' }
  await testCore.as('service').holds.create({ workspaceId, caller, hold })
  const copies = (from: number, ago: string) => `
    insert into hold
    select workspace_id, gen_random_uuid(), number + i, wallet_number + i, 'copy-' || i, wallet_id, currency, amount, captured,
      remaining, status, expires_at - interval '${ago}', reference, remark, created_at - interval '${ago}', updated_at, revision, mac
    from hold, generate_series(${from}, ${from} + 9999) i where biz_id = 'first';`
  await execute(
    testCore.database.ownerUrl,
    `set session_replication_role = replica;
     ${copies(1, '0')}
     update ledger set status = 'CLOSED';
     ${copies(10_001, '2 days')}
     analyze hold`,
  )
  for (const statement of [findDueStatement, expiryDelayStatement]) expect(await blocksOf(statement)).toBeLessThan(20)
})

/** A wallet with one open hold that is not due. */
async function newWallet(name: string) {
  const { workspaceId } = await testCore.as('admin').workspaces.create({ name })
  const { walletId } = await testCore.as('admin').wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  await testCore.as('admin').wallets.deposit({ workspaceId, walletId, amount: '100', bizId: randomUUID() })
  const hold = { walletId, amount: '1', currency: 'USD', expiresInSeconds: 3600, bizId: name }
  await testCore.as('service').holds.create({ workspaceId, caller, hold })
  return { workspaceId: uuidFromId('workspace', workspaceId)!, id: uuidFromId('wallet', walletId)! }
}

/** Runs `work` on a connection that has `copies` of the hold of each workspace, and deletes them. So no sweep of core finds them. */
async function withDueHolds(
  copies: { of: string; count: number; walletId?: string; since: string }[],
  work: (client: Client) => Promise<void>,
) {
  const client = await connect(testCore.database.ownerUrl)
  try {
    await client.query('begin; set local session_replication_role = replica')
    for (const { of, count, walletId = 'wallet_id', since } of copies)
      await client.query(`
        insert into hold
        select workspace_id, gen_random_uuid(), number + i, wallet_number + i, biz_id || i, ${walletId}, currency, amount, captured,
          remaining, status, now() - interval '${since}', reference, remark, created_at, updated_at, revision, mac
        from hold, generate_series(1, ${count}) i where biz_id = '${of}'`)
    await work(client)
  } finally {
    await client.end()
  }
}

test('however many holds of one workspace are due, a sweep finds those of the others', async () => {
  const [many, few] = [await newWallet('many'), await newWallet('few')]
  const copies = [
    { of: 'many', count: 5_000, walletId: 'gen_random_uuid()', since: '1 minute' },
    { of: 'few', count: 2, since: '1 second' },
  ]
  await withDueHolds(copies, async client => {
    const find = async (leftOut: string[]) => {
      const found = await run(client, findDueStatement, [600, leftOut])
      return [found.length, found.find(({ workspaceId }) => workspaceId === few.workspaceId)]
    }
    const due = { workspaceId: few.workspaceId, walletId: few.id, holds: 2 }
    expect(await find([])).toEqual([256, due])
    expect(await find([many.workspaceId])).toEqual([1, due])
    expect(await find([few.workspaceId])).toEqual([256, undefined])
  })
})

test('however many holds of one workspace are due, a batch expires those of the others', async () => {
  const [many, few] = [await newWallet('many-of-one'), await newWallet('few-of-one')]
  const copies = [
    { of: 'many-of-one', count: 1_500, since: '1 minute' },
    { of: 'few-of-one', count: 2, since: '1 second' },
  ]
  await withDueHolds(copies, async client => {
    const wallets = [many, few].map(wallet => ({ ...wallet, at: new Date() }))
    const { due, withMore } = await findDueHolds(client, wallets)
    const count = (workspaceId: Uuid<'workspace'>) => due.filter(hold => hold.workspaceId === workspaceId).length
    expect([count(many.workspaceId), count(few.workspaceId), ...withMore]).toEqual([50, 2, many.workspaceId])
  })
})

test('however many wallets have many due holds, a batch reads few of each', async () => {
  const { workspaceId } = await newWallet('many-wallets')
  const idOf = (at: number | string) => `('00000000-0000-7000-8000-' || lpad((${at})::text, 12, '0'))::uuid`
  const copies = [{ of: 'many-wallets', count: 4_000, walletId: idOf('i % 40'), since: '1 minute' }]
  await withDueHolds(copies, async client => {
    const at = new Date()
    const { rows } = await client.query<{ id: Uuid<'wallet'> }>(
      `select ${idOf('n')} as id from generate_series(0, 39) n`,
    )
    const { due, withMore } = await findDueHolds(
      client,
      rows.map(({ id }) => ({ workspaceId, id, at })),
    )
    const counts = [...Map.groupBy(due, ({ walletId }) => walletId).values()].map(holds => holds.length)
    expect(counts).toEqual(rows.map(() => 2))
    expect([...withMore]).toEqual([workspaceId])
  })
})

test('however many workspaces have due holds, few of them are expired at a time', async () => {
  const workspaces: Uuid<'workspace'>[] = []
  for (let at = 0; at < 20; at++) workspaces.push((await newWallet(`at-a-time-${at}`)).workspaceId)
  const copies = workspaces.map((_, at) => ({ of: `at-a-time-${at}`, count: 1, since: '1 second' }))
  await withDueHolds(copies, async reads => {
    const stopping = new AbortController()
    const posted: { workspaceId: string; finish: () => void }[] = []
    const shards = {
      post: ({ workspaceId }: LedgerRequest) =>
        new Promise<never>(resolve => posted.push({ workspaceId, finish: () => resolve([] as never) })),
    }
    const sweeping = sweepDueHolds({ reads, shards, log: testCore.core.log }, stopping.signal)
    for (let at = 0; at < workspaces.length; at++) {
      const expected = Math.min(workspaces.length, at + 8)
      await until('as many as may be are posted', () => posted.length >= expected)
      expect(posted.length).toBe(expected)
      if (at === workspaces.length - 1) stopping.abort()
      posted[at]!.finish()
    }
    await sweeping
    expect(posted.map(({ workspaceId }) => workspaceId).toSorted()).toEqual(workspaces.toSorted())
  })
})
