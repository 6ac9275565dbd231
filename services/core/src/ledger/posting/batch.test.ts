import { randomUUID } from 'node:crypto'
import { uuidFromId } from '@workspace-wallet/contract'
import { createLog } from '@workspace-wallet/runtime'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../../test/setup/core.ts'
import { execute, query } from '../../../../../test/setup/database.ts'
import { postingOf, requestOf } from '../../../../../test/setup/ledger-states.ts'
import { openPool } from '../../database/pool.ts'
import type { LedgerRequest } from '../decide/requests.ts'
import { Halts } from '../store/halt.ts'
import { type LedgerStore, postBatch } from './batch.ts'
import { RememberedLedgers } from './remembered-ledgers.ts'

/** How a batch that takes too long is posted in parts. Transfers with the remark `slow` never end in time. */
let testCore: TestCore
let pool: pg.Pool
let store: LedgerStore

beforeAll(async () => {
  testCore = await openTestCore()
  const { database, chainKey } = testCore
  const settings = { statement_timeout: '200ms' }
  pool = openPool(database.serviceUrl, { name: 'ledger', max: 1, pipeline: true, chainKey, settings })
  const { log } = createLog('test', 'silent')
  const halts = new Halts(pool, chainKey, log)
  store = { pool, chainKey, log, remembered: new RememberedLedgers(), halts }
  await execute(
    database.ownerUrl,
    `create sequence attempts;
     create function be_slow() returns trigger language plpgsql security definer set search_path = public as $$
       begin perform nextval('attempts'), pg_sleep(60); return new; end $$;
     create trigger be_slow before insert on transfer for each row when (new.remark = 'slow') execute function be_slow();`,
  )
})
afterAll(async () => {
  await pool.end()
  await testCore.close()
})

async function transferIn(remark: string, budgetMs: number): Promise<LedgerRequest> {
  const admin = testCore.as('admin')
  const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
  const wallet = () => admin.wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  const [source, target] = [(await wallet()).walletId, (await wallet()).walletId]
  await admin.wallets.deposit({ workspaceId, walletId: source, amount: '100.00', bizId: randomUUID() })
  const wallets = { sourceWalletId: uuidFromId('wallet', source)!, targetWalletId: uuidFromId('wallet', target)! }
  const deadlineMs = performance.now() + budgetMs
  return requestOf(uuidFromId('workspace', workspaceId)!, postingOf({ ...wallets, remark }), { deadlineMs })
}

const attempts = async () => {
  const [row] = await query(testCore.database.ownerUrl, 'select last_value from attempts')
  return Number(row!.last_value)
}

test('the others of a batch that takes too long are posted', async () => {
  const requests = [await transferIn('a', 60_000), await transferIn('slow', 60_000), await transferIn('b', 60_000)]
  const results = await postBatch(store, requests)
  expect(results.map(({ kind }) => kind)).toEqual(['posted', 'refused', 'posted'])
  expect(results[1]).toMatchObject({ error: { code: 'S002' } })
})

test('requests whose deadline has passed meanwhile are not tried again', async () => {
  const before = await attempts()
  const requests = await Promise.all(Array.from({ length: 8 }, () => transferIn('slow', 100)))
  const results = await postBatch(store, requests)
  expect(results.map(result => result.kind === 'refused' && result.error.code)).toEqual(requests.map(() => 'S002'))
  expect(await attempts()).toBe(before + 1)
})
