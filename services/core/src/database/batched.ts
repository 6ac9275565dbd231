import DataLoader from 'dataloader'
import type { Queryable } from './statement.ts'

/** The maximum number of keys in one statement. */
const batchLimit = 256

/**
 * Makes a function that reads one row by its key. Reads of the same turn of the event loop share one statement, so a
 * hundred balances are one round trip. Nothing is cached.
 *
 * @param readMany returns the existing rows of these keys, in any order
 * @param nameOf maps a key, and the row of that key, to the same unique text
 */
export function batched<Key, Row>(
  readMany: (db: Queryable, keys: readonly Key[]) => Promise<Row[]>,
  nameOf: { key: (key: Key) => string; row: (row: Row) => string },
): (db: Queryable, key: Key) => Promise<Row | null> {
  const loaders = new WeakMap<Queryable, DataLoader<Key, Row | null>>()

  function loaderFor(db: Queryable): DataLoader<Key, Row | null> {
    const readAll = async (keys: readonly Key[]) => {
      const rows = new Map((await readMany(db, keys)).map(row => [nameOf.row(row), row]))
      return keys.map(key => rows.get(nameOf.key(key)) ?? null)
    }
    const loader = new DataLoader(readAll, { cache: false, maxBatchSize: batchLimit })
    loaders.set(db, loader)
    return loader
  }

  return (db, key) => (loaders.get(db) ?? loaderFor(db)).load(key)
}
