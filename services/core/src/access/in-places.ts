import { type AccessPosition, type accessChanges, type accessSnapshot, DomainError } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { z } from 'zod'
import type { Queryable } from '../database/statement.ts'
import { notHere } from '../places/claims.ts'
import { findAccess } from './access.ts'
import { findAccessChanges } from './queries.ts'

type Parts = Omit<Parameters<typeof findAccess>[0], 'reads'> & { name: string; log: Log; accessReads: Queryable }

/**
 * What these keys may do, in all places that answer. Of a workspace that moves, the place counts that has the strongest claim on it.
 *
 * @throws the error of a place if none answers; DomainError S002 for a key that moves to another place at this moment, or whose place
 *   does not answer: a gateway would remember for ever that it does not exist
 */
export async function lookUpIn(
  places: readonly Parts[],
  apiKeys: readonly string[],
): Promise<z.infer<typeof accessSnapshot>> {
  const found = await inEach(places, ({ accessReads: reads, ...place }) => findAccess({ ...place, reads }, apiKeys))
  const keys = found.flatMap((each, place) => each?.keys.map(key => ({ ...key, place })) ?? [])
  return { revisions: found.map(each => each?.revision ?? null), keys: strongestOf(keys) }
}

function strongestOf<Found extends { apiKey: string; claim: number }>(found: readonly Found[]): Found[] {
  return [...Map.groupBy(found, ({ apiKey }) => apiKey).values()].flatMap(places => {
    const strongest = Math.max(...places.map(({ claim }) => claim))
    if (strongest === notHere) throw new DomainError('S002', { retryAfterSeconds: 1 })
    return places.filter(({ claim }) => claim === strongest)
  })
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
