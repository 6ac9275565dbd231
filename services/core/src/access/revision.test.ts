import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'

let opened: TestCore
beforeAll(async () => {
  opened = await openTestCore()
})
afterAll(() => opened.close())

const lockTimeout = { code: '55P03' }

test('while an operator waits for a session that shares the row of a webhook, no other session can share it', async () => {
  const admin = opened.as('admin')
  const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
  const caller = { requestId: 'test' }
  const url = 'https://receiver.example/events'
  const { webhookId } = await opened.as('service').webhooks.create({ workspaceId, caller, url, bizId: 'w' })
  await expectFairLock('webhook', () => admin.webhooks.delete({ workspaceId, webhookId, caller }))
})

test.each(['access_revision', 'workspace', 'member', 'api_key', 'operator', 'workspace_move'])(
  'while a change of access waits for a session that shares rows, no other session can share them: %s',
  async table => {
    const admin = opened.as('admin')
    const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
    await admin.members.add({ workspaceId, userId: 'owner' })
    await admin.apiKeys.create({ workspaceId, ownerUserId: 'owner', scopes: ['wallet:read'], name: 'Test' })
    await expectFairLock(table, () => admin.members.add({ workspaceId, userId: 'other' }))
  },
)

/** A change waits for a session that shares the rows of a table: it gets them before another session shares them. */
async function expectFairLock(table: string, change: () => Promise<unknown>): Promise<void> {
  // Core may not end sessions of another role.
  const [first, second] = await Promise.all([connect(opened.database.ownerUrl), connect(opened.database.ownerUrl)])
  const share = `select from ${table} for share`
  await first.query(`begin; ${share}`)
  const changing = change()
  await until('the change waits', async () => {
    const waiting = `select from pg_locks where not granted and relation = '${table}'::regclass`
    return (await second.query(waiting)).rows.length > 0
  })
  await second.query(`set lock_timeout = '100ms'`)
  await expect(second.query(share)).rejects.toMatchObject(lockTimeout)
  await first.query('rollback')
  await changing
  await expect(second.query(share)).resolves.toBeDefined()
  await Promise.all([first.end(), second.end()])
}
