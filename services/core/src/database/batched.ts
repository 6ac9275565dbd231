import DataLoader from 'dataloader'
import type { Queryable } from './statement.ts'

/** The most reads in one statement. */
const batchLimit = 256

/**
 * A read of one row by its key that shares its statement with all others of the same turn of the event loop: a batch
 * of a hundred balances is one round trip. Nothing is remembered between turns.
 *
 * @param readMany the rows of these keys, in any order, without those that are absent
 * @param nameOf a text that tells keys, and the rows that belong to them, apart
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
