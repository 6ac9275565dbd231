import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { until } from '../../../../test/setup/until.ts'
import { callingToken } from '../database/workspace-concurrency-limit.ts'

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

async function newTenant() {
  const admin = testCore.as('admin')
  const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
  const owner = { userId: 'owner', role: 'OWNER' as const }
  await admin.members.add({ workspaceId, ...owner })
  const key = {
    workspaceId,
    ownerUserId: owner.userId,
    name: 'Key',
    scopes: ['webhook:manage' as const, 'wallet:read' as const],
  }
  const { apiKey } = await admin.apiKeys.create(key)
  const list = () =>
    testCore
      .as('gateway')
      .webhooks.list({ workspaceId, caller: { requestId: 'test', apiKey }, page: 0, size: 10, sort: [] })
  return { workspaceId, apiKey, list }
}

test('the calls of one workspace that wait do not delay those of another one through the same gateway', async () => {
  const { calls } = testCore.core
  const [busy, modest] = [await newTenant(), await newTenant()]
  const gate = Promise.withResolvers<void>()
  const slots = Array.from({ length: 16 }, (_, at) => calls.run(`slot ${at}`, () => gate.promise))
  const answered: string[] = []
  const all = Array.from({ length: 100 }, () => busy.list().then(() => answered.push('busy')))
  await until('they wait', () => calls.load.waiting >= 100)
  all.push(modest.list().then(() => answered.push('modest')))
  await until('it waits', () => calls.load.waiting >= 101)
  gate.resolve()
  await Promise.all([...slots, ...all])
  expect(answered.indexOf('modest')).toBeLessThan(50)
})

test('what a viewer or a service lists does not count as listed by the workspace', async () => {
  const { core } = testCore
  const { workspaceId, apiKey } = await newTenant()
  const callers: (string | undefined)[] = []
  const { lists } = core
  const read = lists.read.bind(lists)
  lists.read = query => {
    callers.push(callingToken.getStore())
    return read(query)
  }
  const page = { workspaceId, page: 0, size: 10, sort: [], filter: {} }
  await testCore.as('gateway').wallets.list({ ...page, caller: { requestId: 'test', apiKey } })
  for (const role of ['viewer', 'service'] as const)
    await testCore.as(role).wallets.list({ ...page, caller: { requestId: 'test' } })
  expect(callers).toEqual([undefined, 'viewer:test', 'service:test'])
})
