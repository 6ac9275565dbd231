import type { AccessPosition, accessChanges, accessSnapshot } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { z } from 'zod'
import type { Queryable } from '../database/statement.ts'
import { findAccess } from './access.ts'
import { findAccessChanges } from './queries.ts'

type Parts = Omit<Parameters<typeof findAccess>[0], 'reads'> & { name: string; log: Log; accessReads: Queryable }

/** What these keys may do, in all places that answer. @throws the error of a place if none answers */
export async function lookUpIn(
  places: readonly Parts[],
  apiKeys: readonly string[],
): Promise<z.infer<typeof accessSnapshot>> {
  const found = await inEach(places, ({ accessReads: reads, ...place }) => findAccess({ ...place, reads }, apiKeys))
  return {
    revisions: found.map(each => each?.revision ?? null),
    keys: found.flatMap((each, place) => each?.keys.map(key => ({ ...key, place })) ?? []),
  }
}

const never: AccessPosition = { revision: 0, epoch: null }

/** The keys that changed in all places that answer. @throws the error of a place if none answers */
export async function findChangesIn(
  places: readonly Parts[],
  since: readonly AccessPosition[],
): Promise<Omit<z.infer<typeof accessChanges>, 'checksumKey'>> {
  // A core with other places has positions in another order.
  const known = since.length === places.length ? since : places.map(() => never)
  const found = await inEach(places, ({ accessReads }, index) => {
    const { revision, epoch } = known[index]!
    return findAccessChanges(accessReads, { since: revision, epoch })
  })
  return {
    positions: found.map(each => each && { revision: each.revision, epoch: each.epoch }),
    complete: found.every(each => each === null || each.complete),
    apiKeys: found.flatMap(each => each?.apiKeys ?? []),
  }
}

/** Null for a place that does not answer, unless none does. */
async function inEach<Found>(
  places: readonly Parts[],
  read: (place: Parts, index: number) => Promise<Found>,
): Promise<(Found | null)[]> {
  const answers = await Promise.allSettled(places.map(read))
  if (answers.every(({ status }) => status === 'rejected')) throw (answers[0] as PromiseRejectedResult).reason
  return answers.map(answer => (answer.status === 'fulfilled' ? answer.value : null))
}
