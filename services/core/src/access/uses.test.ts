import { mintId, uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTenantIn, openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { execute, query } from '../../../../test/setup/database.ts'
import { markKeysUsed } from './queries.ts'

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

const newTenant = () => createTenantIn(testCore, ['wallet:read'])

test('uses of keys of a workspace that is leaving do not keep those of others from being recorded', async () => {
  const [leaving, other] = [await newTenant(), await newTenant()]
  const { ownerUrl } = testCore.database
  // Opens its ledger.
  await testCore.as('admin').wallets.create({ workspaceId: leaving.workspaceId, currency: 'USD', name: 'Wallet' })
  await execute(
    ownerUrl,
    `set session_replication_role = replica;
     update ledger set status = 'MOVING' where workspace_id = '${uuidFromId('workspace', leaving.workspaceId)}'`,
  )
  const usedAt = new Date()
  const uses = [leaving.apiKey, other.apiKey, mintId('apiKey')].map(apiKey => ({ apiKey, usedAt }))
  await markKeysUsed(testCore.core.reads, uses)
  const rows = await query(ownerUrl, 'select id from api_key where last_used_at is not null')
  expect(rows).toEqual([{ id: uuidFromId('apiKey', other.apiKey) }])
})
