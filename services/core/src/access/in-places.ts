import { type AccessPosition, type accessChanges, type accessSnapshot, accessWaitMs } from '@workspace-wallet/contract'
import type { z } from 'zod'
import type { Queryable } from '../database/statement.ts'
import type { WorkspaceConcurrencyLimit } from '../database/workspace-concurrency-limit.ts'
import { notHere } from '../places/claims.ts'
import { askAll } from '../places/in-time.ts'
import { type ClaimedAccess, findAccess } from './access.ts'
import type { AccessCache } from './access-cache.ts'
import { findAccessChanges } from './queries.ts'

type Parts = Omit<Parameters<typeof findAccess>[0], 'reads'> & {
  name: string
  accessReads: Queryable
  accessCalls: WorkspaceConcurrencyLimit
}
type Found = ClaimedAccess & { place: number }

/**
 * What these keys may do. Of the places that have genuine rows of a key, the one counts that has the strongest claim on its workspace.
 * Other rows count only if no place has genuine ones, so that nobody who can write to one place changes what the keys of another may do.
 * A place that does not answer in time is left out.
 *
 * @param caller the name of the token, which shares the connections with others
 * @throws the error of a place if none answers
 */
export async function lookUpIn(
  places: readonly Parts[],
  apiKeys: readonly string[],
  caller: string,
): Promise<z.infer<typeof accessSnapshot>> {
  const snapshots = await askAll(
    places,
    ({ accessReads: reads, accessCalls, ...place }) =>
      accessCalls.run(caller, () => findAccess({ ...place, reads }, apiKeys)),
    found =>
      haveAll(
        apiKeys,
        found.flatMap(({ keys }) => keys),
      ),
  )
  const found = Map.groupBy(
    snapshots.flatMap((snapshot, place) => snapshot?.keys.map(key => ({ ...key, place })) ?? []),
    ({ apiKey }) => apiKey,
  )
  const isComplete = snapshots.every(snapshot => snapshot !== null)
  const keys: Found[] = []
  const unavailable: string[] = []
  for (const [apiKey, rows] of found) {
    const key =
      rows.filter(isUsable).reduce<Found | null>(stronger, null) ?? (isComplete ? rows.find(isModified) : null)
    if (key) keys.push(key)
    else unavailable.push(apiKey)
  }
  return { revisions: snapshots.map(snapshot => snapshot?.revision ?? null), keys, unavailable }
}

function haveAll(apiKeys: readonly string[], found: readonly ClaimedAccess[]): boolean {
  const usable = new Set(found.filter(isUsable).map(({ apiKey }) => apiKey))
  return apiKeys.every(apiKey => usable.has(apiKey))
}

const isUsable = ({ isGenuine, claim }: ClaimedAccess) => isGenuine && claim !== notHere
const isModified = ({ isGenuine }: ClaimedAccess) => !isGenuine
const stronger = (a: Found | null, b: Found) => (a && a.claim >= b.claim ? a : b)

const never: AccessPosition = { revision: 0, epoch: null }

/**
 * Waits until a key changes, but at most for `accessWaitMs`, so that a gateway seldom has to ask. Core polls each place anyway: the database
 * is asked once more only if there is a change, or if no poll since the call was answered. If many calls wait already, it does not wait.
 *
 * @param caller the name of the token, which shares the connections with others
 * @returns the keys that changed, for each place; null for one that does not answer in time
 * @throws the error of a place if none answers
 */
export async function findChangesIn(
  places: readonly (Parts & { access: AccessCache })[],
  since: readonly AccessPosition[],
  caller: string,
): Promise<z.infer<typeof accessChanges>['places']> {
  const calledAtMs = performance.now()
  // A core with other places has positions in another order.
  const known = since.length === places.length ? since : places.map(() => never)
  if (places.every(({ access }, index) => access.mayWait && access.hasPolled(known[index]!, Number.NEGATIVE_INFINITY)))
    await waitForChange(places)
  return askAll(places, async ({ access, accessReads, accessCalls }, index) => {
    const { revision, epoch } = known[index]!
    if (access.hasPolled({ revision, epoch }, calledAtMs)) return { revision, epoch, complete: true, apiKeys: [] }
    const { now, hasMoves, ...changes } = await accessCalls.run(caller, () =>
      findAccessChanges(accessReads, { since: revision, epoch }),
    )
    return changes
  })
}

/** Resolves when a poll of one of the places finds a change, and at the latest after `accessWaitMs`. */
async function waitForChange(places: readonly { access: AccessCache }[]): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>()
  const timer = setTimeout(resolve, accessWaitMs)
  const stops = places.map(({ access }) => access.onChange(resolve))
  await promise
  clearTimeout(timer)
  for (const stop of stops) stop()
}
