import { mintId } from '@workspace-wallet/contract'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { connect, createTestDatabase } from '../../../../test/setup/database.ts'
import { until } from '../../../../test/setup/until.ts'

let testCore: TestCore
/** Holds a lock. */
let owner: Awaited<ReturnType<typeof connect>>
/** In a transaction, PostgreSQL would show the sessions as they were when it first showed them. */
let observer: Awaited<ReturnType<typeof connect>>
beforeAll(async () => {
  testCore = await openTestCore({ furtherPlaces: [await createTestDatabase()] })
  owner = await connect(testCore.database.ownerUrl)
  observer = await connect(testCore.database.ownerUrl)
})
afterAll(async () => {
  await Promise.all([owner.end(), observer.end()])
  await testCore.close()
})

const idle = { running: 0, waiting: 0 }

async function isWaiting(): Promise<boolean> {
  const statement = `select from pg_stat_activity
    where datname = current_database() and application_name = 'core reads' and wait_event_type = 'Lock'`
  return (await observer.query(statement)).rows.length > 0
}

test('searches of admins do not wait for those of viewers', async () => {
  const { core } = testCore
  const [viewer, admin] = [testCore.as('viewer'), testCore.as('admin')]
  await owner.query('begin; lock table member in access exclusive mode')
  const searching = Promise.allSettled(Array.from({ length: 20 }, () => viewer.search.find({ text: 'any' })))
  await until('a viewer searches', isWaiting)
  expect(core.searches.load).toMatchObject(idle)
  const { searched } = await admin.search.find({ text: mintId('event') })
  expect(searched.every(({ isComplete }) => isComplete)).toBe(true)
  expect((await admin.workspaces.list({ limit: 1 })).workspaces).toEqual([])
  await owner.query('rollback')
  expect((await searching).map(({ status }) => status)).toContain('fulfilled')
})

test('a search of a viewer takes a slot for viewers on each place', async () => {
  const [{ viewerCalls }] = testCore.places.all.toReversed() as [TestCore['core']]
  const gate = Promise.withResolvers<void>()
  const slots = Array.from({ length: 5 }, (_, at) => viewerCalls.run(`slot ${at}`, () => gate.promise))
  const { waiting } = viewerCalls.load
  const listed = testCore.as('viewer').workspaces.list({ limit: 1 })
  await until('it waits', () => viewerCalls.load.waiting === waiting + 1)
  gate.resolve()
  expect((await listed).workspaces).toEqual([])
  await Promise.all(slots)
  expect(viewerCalls.load).toMatchObject(idle)
})

test('all comparisons of a text have one slot, and one that takes too long counts only for itself', async () => {
  const { searches } = testCore.core
  let slots = 0
  const run = searches.run.bind(searches)
  searches.run = (actor, work) => {
    slots++
    return run(actor, work)
  }
  await owner.query('begin; lock table member in access exclusive mode')
  const { searched } = await testCore.as('admin').search.find({ text: 'any' })
  await owner.query('rollback')
  expect(searched.filter(({ isComplete }) => !isComplete)).toEqual([
    { kind: 'member', by: 'userId', isComplete: false },
  ])
  expect(searched.length).toBeGreaterThan(10)
  expect(slots).toBe(1)
})
