import { uuidFromId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'
import type { ListDatabase, ListQuery } from '../database/lists/list-reader.ts'
import { EventReader } from './event-reader.ts'

/** How pages share the event loop and the connections. */

let testCore: TestCore
beforeAll(async () => {
  testCore = await openTestCore()
})
afterAll(() => testCore.close())

/** A workspace with this number of events. */
async function newWorkspace(events: number): Promise<string> {
  const admin = testCore.as('admin')
  const { workspaceId } = await admin.workspaces.create({ name: 'Test' })
  for (let count = 0; count < events; count++)
    await admin.wallets.create({ workspaceId, currency: 'USD', name: 'Wallet' })
  return workspaceId
}

/** A reader whose statements wait until the test lets them begin. */
function heldReader() {
  const waiting: { workspace: string; begin: () => void }[] = []
  const lists: ListDatabase = {
    async read<Row>(query: ListQuery<Row>) {
      await new Promise<void>(begin => waiting.push({ workspace: query.workspace, begin }))
      return testCore.core.lists.read(query)
    },
  }
  return { reader: new EventReader({ ...testCore.core, lists }), waiting }
}

test('one page is read at a time, and workspaces take turns', async () => {
  const [first, second] = [await newWorkspace(1), await newWorkspace(1)]
  const { reader, waiting } = heldReader()
  const pages = [first, first, first, second].map(workspaceId =>
    reader.read(workspaceId, { after: 0, size: 10, types: [] }),
  )
  for (let at = 0; at < pages.length; at++) {
    await until('the next page is read', () => waiting.length > at)
    expect(reader.load).toMatchObject({ running: 1, waiting: pages.length - at - 1 })
    waiting[at]!.begin()
  }
  expect((await Promise.all(pages)).map(({ events }) => events.length)).toEqual([1, 1, 1, 1])
  const uuid = (workspaceId: string) => uuidFromId('workspace', workspaceId)
  expect(waiting.map(({ workspace }) => workspace)).toEqual([first, second, first, first].map(uuid))
  expect(reader.load).toMatchObject({ running: 0, waiting: 0 })
})

test('neither the API nor webhooks keep the other waiting', async () => {
  const workspaces = [await newWorkspace(1), await newWorkspace(1)] as const
  const { reader, waiting } = heldReader()
  const page = { after: 0, size: 10, types: [] }
  const pages = workspaces.flatMap(workspaceId => [
    reader.read(workspaceId, page),
    reader.readForWebhook(workspaceId, page),
  ])
  expect(reader.load).toMatchObject({ running: 2, waiting: 2 })
  for (let at = 0; at < pages.length; at++) {
    await until('the next page is read', () => waiting.length > at)
    waiting[at]!.begin()
  }
  expect((await Promise.all(pages)).map(({ events }) => events.length)).toEqual([1, 1, 1, 1])
})

test('lists of the workspace do not keep its pages of events waiting', async () => {
  const workspaceId = await newWorkspace(1)
  const owner = await connect(testCore.database.ownerUrl)
  await owner.query('select pg_advisory_lock(1)')
  const wait = { name: '', text: 'select pg_advisory_xact_lock_shared(1)' }
  const lists = Array.from({ length: 12 }, () =>
    testCore.core.lists.read({
      workspace: uuidFromId('workspace', workspaceId)!,
      cost: 'bounded',
      statement: wait,
      values: [],
    }),
  )
  const { events } = await testCore.core.events.read(workspaceId, { after: 0, size: 10, types: [] })
  expect(events).toHaveLength(1)
  await owner.end()
  await Promise.all(lists)
})

test('a page is built in several turns of the event loop, between which other work runs', async () => {
  const workspaceId = await newWorkspace(500)
  let rows: unknown[] = []
  const recording: ListDatabase = {
    async read<Row>(query: ListQuery<Row>) {
      const found = await testCore.core.lists.read(query)
      rows = found
      return found
    },
  }
  const page = { after: 0, size: 500, types: [] }
  const expected = await new EventReader({ ...testCore.core, lists: recording }).read(workspaceId, page)
  expect(expected.events).toHaveLength(500)

  // Now without PostgreSQL, so that all turns are those of the reader.
  const lists = { read: async () => rows } as ListDatabase
  let turns = 0
  let isReading = true
  const count = () => {
    turns++
    if (isReading) setImmediate(count)
  }
  setImmediate(count)
  expect(await new EventReader({ ...testCore.core, lists }).read(workspaceId, page)).toEqual(expected)
  isReading = false
  // Sixteen events in each, of which the first is that of the call.
  expect(turns).toBeGreaterThanOrEqual(31)
})
