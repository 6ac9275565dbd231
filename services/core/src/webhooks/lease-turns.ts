import type { lease as answer } from '@workspace-wallet/contract'
import type { Log } from '@workspace-wallet/runtime'
import type { z } from 'zod'
import { inTime } from '../places/in-time.ts'

type Lease = z.infer<typeof answer>

/** The place whose turn it is to be asked first. */
let turn = 0

/**
 * Leases webhooks in one place after the other until there are `size`. Each call begins with another place, so that none waits for the
 * others forever. A place that does not answer in time is left out, unless all of them are.
 *
 * @param leaseIn leases up to a number of webhooks in a place, and finds the leases there that were revoked; also asked for none
 */
export async function leaseInTurns<Place extends { name: string }>(
  places: readonly Place[],
  log: Log,
  size: number,
  leaseIn: (place: Place, size: number) => Promise<Lease>,
): Promise<Lease> {
  const first = turn++ % places.length
  const lease: Lease = { webhooks: [], revoked: [] }
  const errors: unknown[] = []
  for (const place of [...places.slice(first), ...places.slice(0, first)])
    try {
      const leasing = leaseIn(place, size - lease.webhooks.length)
      const { webhooks, revoked } = await (places.length > 1 ? inTime(place, leasing) : leasing)
      lease.webhooks.push(...webhooks)
      lease.revoked.push(...revoked)
    } catch (error) {
      errors.push(error)
      if (places.length > 1) log.warn({ err: error, place: place.name }, 'no webhooks were leased in a place')
    }
  if (errors.length === places.length) throw errors[0]
  return lease
}
