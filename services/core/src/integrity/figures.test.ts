import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { query } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

async function read(what: string): Promise<number> {
  const name = `core_last_${what}_timestamp_seconds`
  const text = await testCore.core.metrics.registry.metrics()
  return Number(new RegExp(`^${name} (.*)$`, 'm').exec(text)![1])
}

async function isRecorded(action: string): Promise<number> {
  const [row] = await query(
    testCore.database.ownerUrl,
    'select extract(epoch from max(at))::float8 as at from audit where action = $1 and workspace_id is null',
    [action],
  )
  return row!.at as number
}

test('the last verification, checkpoint and backup of all workspaces are those of the audit', async () => {
  const admin = testCore.as('admin')
  const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
  for await (const _ of await admin.ledger.verify({ workspaceId }));
  for await (const _ of await admin.ledger.checkpoint({ workspaceId }));
  expect([await read('verification'), await read('checkpoint'), await read('backup')]).toEqual([0, 0, 0])

  for await (const _ of await admin.ledger.verify({}));
  for await (const _ of await admin.ledger.checkpoint({}));
  await admin.system.recordBackup({ name: 'wallet.tar', bytes: 1 })
  const actions = { verification: 'ledger.verify', checkpoint: 'ledger.checkpoint', backup: 'system.backup' }
  for (const [what, action] of Object.entries(actions)) {
    const at = await isRecorded(action)
    await until(`the ${what} is that of the audit`, async () => (await read(what)) === at)
  }
})

test('a record that the service did not write does not count', async () => {
  const before = await read('backup')
  await query(
    testCore.database.serviceUrl,
    `insert into audit (at, actor, action, target, after, position, mac)
     select clock_timestamp(), 'nobody', 'system.backup', 'forged', '{}', position + 1, ''
     from audit where workspace_id is null order by position desc limit 1`,
  )
  expect(await isRecorded('system.backup')).toBeGreaterThan(before)
  expect(await read('backup')).toBe(before)
})
