import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { execute, query } from '../../../../test/setup/database.ts'
import { expiryDelayStatement } from './figures.ts'
import { findDueStatement } from './sweeper.ts'

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

const caller = { requestId: 'test' }

/** How many blocks a statement reads, with its parameters as literals. */
async function blocksOf({ text }: { text: string }, seconds = 600): Promise<number> {
  const sql = `explain (analyze, buffers, format json) ${text.replace('$1', String(seconds))}`
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
