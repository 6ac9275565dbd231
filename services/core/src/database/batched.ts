import DataLoader from 'dataloader'
import { inTurns } from './turns.ts'
import { callingToken } from './workspace-concurrency-limit.ts'

/** The maximum number of keys in one statement. */
const batchLimit = 256

type Batched<Source, Key, Row, Result> = {
  /** Returns the existing rows of these keys, which are all different, in any order. */
  readMany: (source: Source, keys: readonly Key[]) => Promise<Row[]>
  /** Maps a key, and the row of that key, to the same unique text. */
  nameOf: { key: (key: Key) => string; row: (row: Row) => string }
  /** Returns what is read. If it throws, only the reads of this row fail. */
  resultOf: (source: Source, row: Row) => Result | Promise<Result>
  /** For reads that no limit precedes: one statement of each caller runs at a time, and its reads meanwhile share the next ones. */
  isSerial?: boolean
}

/**
 * Makes a function that reads one row by its key. Reads of the same turn of the event loop share one statement, so a
 * hundred balances are one round trip. Nothing is cached. `caller`: reads of different callers share no statement.
 */
export function batched<Source extends object, Key, Row, Result>({
  readMany,
  nameOf,
  resultOf,
  isSerial = false,
}: Batched<Source, Key, Row, Result>): (source: Source, key: Key, caller?: string) => Promise<Result | null> {
  const loaders = new WeakMap<Source, Map<string, DataLoader<Key, Result | null>>>()

  function loaderFor(source: Source, caller: string): DataLoader<Key, Result | null> {
    const readAll = async (keys: readonly Key[]) => {
      const asked = new Map(keys.map(key => [nameOf.key(key), key]))
      const results = new Map<string, Result | Error>()
      await inTurns(await readMany(source, [...asked.values()]), async row => {
        results.set(nameOf.row(row), await settle(() => resultOf(source, row)))
      })
      return keys.map(key => results.get(nameOf.key(key)) ?? null)
    }
    // What is read for several callers must not count as read for the first one's token.
    const readForAll = (keys: readonly Key[]) => callingToken.exit(() => readAll(keys))
    const options = { cache: false, maxBatchSize: batchLimit }
    const loader = isSerial ? serialLoader(readForAll, options) : new DataLoader(readForAll, options)
    const ofSource = loaders.get(source) ?? new Map()
    loaders.set(source, ofSource.set(caller, loader))
    return loader
  }

  return (source, key, caller = '') => (loaders.get(source)?.get(caller) ?? loaderFor(source, caller)).load(key)
}

function serialLoader<Key, Result>(
  read: DataLoader.BatchLoadFn<Key, Result>,
  options: DataLoader.Options<Key, Result>,
): DataLoader<Key, Result> {
  let reading: Promise<unknown> = Promise.resolve()
  let last = reading
  return new DataLoader(
    keys => {
      const results = read(keys)
      reading = Promise.resolve(results).catch(() => {})
      return results
    },
    {
      ...options,
      batchScheduleFn(dispatch) {
        last = last.then(() => {
          dispatch()
          return reading
        })
      },
    },
  )
}

async function settle<Result>(work: () => Result | Promise<Result>): Promise<Result | Error> {
  try {
    return await work()
  } catch (error) {
    return error as Error
  }
}
