import { afterAll, beforeAll, beforeEach, expect, test, vi } from 'vitest'
import { openTestCore, type TestCore } from '../../../../test/setup/core.ts'
import { until } from '../../../../test/setup/until.ts'
import { AccessCache } from './access-cache.ts'
import { findChangesIn } from './in-places.ts'

let opened: TestCore
beforeAll(async () => {
  opened = await openTestCore()
})
afterAll(() => opened.close())

/** A cache that polls when the test says so. */
let cache: AccessCache
beforeEach(async () => {
  cache = new AccessCache({ ...opened.core, reads: opened.core.accessReads })
  await cache.poll()
})

async function newKey(): Promise<{ apiKey: string }> {
  const { workspaceId } = await opened.as('admin').workspaces.create({ name: 'Test' })
  await opened.as('admin').members.add({ workspaceId, userId: 'owner' })
  return opened.as('admin').apiKeys.create({ workspaceId, ownerUserId: 'owner', scopes: ['wallet:read'] })
}

const changesSince = (since: Parameters<typeof findChangesIn>[1], access = cache) =>
  findChangesIn([{ ...opened.core, access }], since, 'test')

/** The position now. */
async function latest() {
  const [place] = await changesSince([])
  return { revision: place!.revision, epoch: place!.epoch }
}

test('a caller that waits learns of a change with the next poll of core', async () => {
  const { apiKey } = await newKey()
  const since = await latest()
  const disabling = opened.as('admin').apiKeys.disable({ apiKey })
  const places = await until('a call learns of the change', async () => {
    const answer = await opened.as('gateway').access.changes({ since: [since] })
    return answer.places[0]!.apiKeys.length > 0 && answer.places
  })
  await disabling
  expect(places).toEqual([{ ...(await latest()), complete: true, apiKeys: [apiKey] }])
})

test('a caller that waits in vain for a poll gets what the database says', async () => {
  const { apiKey } = await newKey()
  const since = await latest()
  await cache.poll()
  await opened.as('admin').apiKeys.disable({ apiKey })
  expect(cache.hasPolled(since, Number.NEGATIVE_INFINITY)).toBe(true)
  expect(await changesSince([since])).toEqual([{ ...(await latest()), complete: true, apiKeys: [apiKey] }])
})

test('a limited number of calls wait, and others are answered at once', async () => {
  const since = await latest()
  await cache.poll()
  let waiting = 0
  for (; cache.mayWait; waiting++) cache.onChange(() => {})
  expect(waiting).toBe(256)
  const onChange = vi.spyOn(cache, 'onChange')
  expect(await changesSince([since])).toEqual([{ ...since, complete: true, apiKeys: [] }])
  expect(onChange).not.toHaveBeenCalled()
})

test('an answer that there is no change is not older than the call', async () => {
  const since = await latest()
  const { access } = opened.core
  const calledAtMs = performance.now()
  expect(await changesSince([since], access)).toEqual([{ ...since, complete: true, apiKeys: [] }])
  expect(access.hasPolled(since, calledAtMs)).toBe(true)
})
