import { randomUUID } from 'node:crypto'
import { Decimal, idFromUuid, mintId, type Uuid } from '@workspace-wallet/contract'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect } from '../../../../test/setup/database.ts'
import { blocksOf, explainStatements, readPlans } from '../../../../test/setup/plans.ts'

/**
 * What searches over all workspaces read, of a hundred thousand transfers in hundreds of workspaces. The tables were never analyzed.
 */

const workspaces = 250
const transfersOfEach = 400

let blocksRead = 0
readPlans(({ Plan }) => {
  blocksRead += blocksOf(Plan)
})

let core: TestCore
let owner: pg.Client
beforeAll(async () => {
  core = await openTestCore({
    async prepare(database) {
      owner = await connect(database.ownerUrl)
      await explainStatements(owner, database, { nested: false })
      for (const table of ['transfer', 'wallet', 'hold', 'journal'])
        await owner.query(`alter table ${table} set (autovacuum_enabled = off)`)
      await owner.query(filling)
      // As autovacuum does.
      await owner.query(`select brin_summarize_new_values('transfer_origin')`)
    },
  })
}, 120_000)
afterAll(async () => {
  await owner.end()
  await core.close()
})

const wanted = {
  transfer: randomUUID() as string as Uuid<'transfer'>,
  wallet: randomUUID() as string as Uuid<'wallet'>,
  workspace: randomUUID() as string as Uuid<'workspace'>,
}

/** Rows without valid MACs, which searches do not check. One transfer in the middle has names of its own. */
const filling = `
  set session_replication_role = replica;
  create temporary table filled as
    select case g when ${workspaces / 2} then uuid '${wanted.workspace}' else gen_random_uuid() end as id, g
    from generate_series(1, ${workspaces}) g;
  insert into workspace (id, name, created_at, updated_at, revision, mac)
    select id, 'Workspace ' || g, now(), now(), 1, '' from filled;
  insert into ledger (workspace_id, last_posted_at, revision, mac) select id, now(), 1, '' from filled;
  insert into wallet (workspace_id, id, number, kind, biz_id, name, currency, status, created_at, updated_at, revision, mac)
    select f.id, case when f.id = '${wanted.workspace}' and n = 1 then uuid '${wanted.wallet}' else uuidv7() end, n,
      'CUSTOMER', 'wallet-' || n || '-' || g, 'Wallet ' || n || ' of ' || g, 'USD', 'ACTIVE', now(), now(), 1, ''
    from generate_series(1, 40) n, filled f;
  insert into transfer (workspace_id, id, type, biz_id, reference, position, order_count, amount, currency, remark, actor,
      request_id, created_at, source_wallet_id, target_wallet_id, source_sequence, source_order_count, source_balance,
      source_mac, target_sequence, target_order_count, target_balance, target_mac)
    select f.id, case when is_wanted then uuid '${wanted.transfer}' else uuidv7() end, 'TRANSFER',
      case when is_wanted then 'wanted' else 'biz-' || n || '-' || g end,
      case when is_wanted then 'wanted' when n % 7 = 0 then 'ref-' || n end, n, n, n, 'USD', 'Remark ' || n,
      case when is_wanted then 'operator:ada' else 'service:s' end,
      case when is_wanted then 'wanted' else gen_random_uuid()::text end,
      now() - (${transfersOfEach} - n) * interval '1 min', '${wanted.wallet}', gen_random_uuid(), n, n, 0,
      decode(repeat('01', 33), 'hex'), n, n, 0, decode(repeat('01', 33), 'hex')
    from generate_series(1, ${transfersOfEach}) n, filled f,
      lateral (select f.id = '${wanted.workspace}' and n = ${transfersOfEach / 2} as is_wanted) _;
  reset session_replication_role`

/** The number of blocks that a call has read. */
async function blocksReadBy(call: () => Promise<unknown>): Promise<number> {
  blocksRead = 0
  await call()
  expect(blocksRead).toBeGreaterThan(0)
  return blocksRead
}

const admin = () => core.as('admin')
const transferId = idFromUuid('transfer', wanted.transfer)
const workspaceId = idFromUuid('workspace', wanted.workspace)
const walletId = idFromUuid('wallet', wanted.wallet)
const minutesAgo = (minutes: number) => new Date(Date.now() - minutes * 60_000)

test('the tables have more blocks than any search here may read', async () => {
  const { rows } = await owner.query(`select pg_relation_size('transfer') / 8192 as blocks`)
  expect(Number(rows[0].blocks)).toBeGreaterThan(3_000)
})

test.each([
  ['transferId', { transferId }],
  ['bizId', { bizId: 'wanted' }],
  ['reference', { reference: 'wanted' }],
  ['request ID', { requestId: 'wanted' }],
  ['an actor who makes few transfers', { actor: 'operator:ada' }],
])('a transfer is found in all workspaces by %s', async (_, search) => {
  const read = async () => {
    const { transfers } = await admin().transfers.search(search)
    expect(transfers.map(each => each.transferId)).toEqual([transferId])
  }
  // A descent of an index for each workspace at most, or the summaries of the BRIN index and a few ranges of blocks.
  expect(await blocksReadBy(read)).toBeLessThan(1_500)
})

test.each([
  ['a wallet', { walletId, workspaceId }],
  ['a workspace', { workspaceId }],
  ['a deep page of a workspace', { workspaceId, after: 'p50' }],
])('a page of %s reads few blocks', async (_, search) => {
  const read = async () => expect((await admin().transfers.search({ ...search, limit: 10 })).transfers).toHaveLength(10)
  expect(await blocksReadBy(read)).toBeLessThan(100)
})

test('other conditions read no more than the transfers of the workspace', async () => {
  const search = { workspaceId, amountFrom: new Decimal(100), remarkPrefix: 'Remark', limit: 10 }
  const read = async () => expect((await admin().transfers.search(search)).transfers).toHaveLength(10)
  expect(await blocksReadBy(read)).toBeLessThan(transfersOfEach * 1.5)
})

test('a minute of all workspaces is read without the other times', async () => {
  const read = async () => {
    const { transfers } = await admin().transfers.search({ from: minutesAgo(100), to: minutesAgo(98), limit: 500 })
    expect(transfers.length).toBeGreaterThan(workspaces)
  }
  expect(await blocksReadBy(read)).toBeLessThan(1_500)
})

test('the transfers of the last hours are counted without reading the earlier ones', async () => {
  const read = async () => {
    const { totals } = await admin().system.activity({ hours: 2 })
    const counted = totals.reduce((sum, { transfers }) => sum + transfers, 0)
    expect(counted).toBeGreaterThan(50 * workspaces)
    expect(counted).toBeLessThanOrEqual(120 * workspaces)
  }
  expect(await blocksReadBy(read)).toBeLessThan(2_000)
})

test.each([
  ['ID', { walletId }],
  ['bizId', { bizId: 'wallet-1-7' }],
  ['name', { namePrefix: 'Wallet 1 of 7' }],
  ['none, newest first', {}],
])('wallets are found in all workspaces by %s', async (_, search) => {
  const read = async () =>
    expect((await admin().wallets.search({ ...search, limit: 5 })).wallets.length).toBeGreaterThan(0)
  expect(await blocksReadBy(read)).toBeLessThan(1_500)
})

test('one box reads little, whatever is typed', async () => {
  for (const text of ['wanted', transferId, mintId('event'), mintId('flow'), mintId('hold'), randomUUID()])
    expect(await blocksReadBy(() => admin().search.find({ text })), text).toBeLessThan(4_000)
})
