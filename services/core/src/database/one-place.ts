import { AsyncLocalStorage } from 'node:async_hooks'
import type { Pool, PoolClient } from 'pg'

/** The name of the place whose transaction is in progress, for all that the transaction calls. */
const inProgress = new AsyncLocalStorage<string>()

const placeOf = new WeakMap<object, string>()

/** An error of core: no transaction spans two databases, so what uses two places is not all or nothing. */
export class TwoPlaces extends Error {}

/** Makes a pool refuse connections to transactions of other places. `orm`: what uses the pool for its transactions. */
export function keepToPlace(pool: Pool, place: string, orm?: object): void {
  for (const owner of [pool, orm]) if (owner) placeOf.set(owner, place)
  const connect = pool.connect.bind(pool)
  // The pool connects for `query` too, with a callback.
  pool.connect = ((callback?: (error: Error | undefined, client?: PoolClient, release?: () => void) => void) => {
    const error = refusal(place)
    if (!error) return callback ? connect(callback as never) : connect()
    if (!callback) return Promise.reject(error)
    callback(error)
  }) as Pool['connect']
}

/**
 * Runs a transaction on a connection of a pool or ORM. Until it ends, it and all that it calls get no connection to another place.
 *
 * @throws TwoPlaces if it is called by a transaction of another place
 */
export async function runTransaction<Result>(owner: object, transaction: () => Promise<Result>): Promise<Result> {
  const place = placeOf.get(owner)
  if (place === undefined) return transaction()
  const error = refusal(place)
  if (error) throw error
  return inProgress.run(place, transaction)
}

function refusal(place: string): TwoPlaces | null {
  const other = inProgress.getStore()
  return other === undefined || other === place
    ? null
    : new TwoPlaces(`a transaction in ${other} must not use ${place}`)
}
