import { mintId, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../../test/setup/core.ts'
import { callingToken, WorkspaceConcurrencyLimit } from '../../database/workspace-concurrency-limit.ts'
import { LedgerWaits } from './ledger-waits.ts'

let opened: TestCore
beforeAll(async () => {
  opened = await openTestCore()
})
afterAll(() => opened.close())

test('a read of a workspace does not wait behind what the token of another one waits for', async () => {
  const limit = new WorkspaceConcurrencyLimit({
    slots: 2,
    reservedSlots: 0,
    waitingPerWorkspace: 8,
    waiting: 8,
    waitMs: 60_000,
  })
  const waits = new LedgerWaits(opened.core.reads, limit)
  const workspace: Uuid<'workspace'> = uuidFromId('workspace', mintId('workspace'))
  const [first, others] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const ofToken = callingToken.run('service:s', () => [
    limit.run('a', () => first.promise),
    limit.run('b', () => others.promise),
    limit.run('c', () => others.promise),
    waits.wait(workspace),
  ])
  const own = waits.wait(workspace)
  first.resolve()
  // The token has used more time than the workspace.
  await expect(own).resolves.toBeUndefined()
  others.resolve()
  await Promise.all(ofToken)
})
