import { describe, expect, test } from 'vitest'
import { expectedOfShards, separateShards } from './citus.ts'
import expectedCatalog from './expected-catalog.json' with { type: 'json' }

/** What a worker of Citus shows: each table, and its shard, whose names end with the number of the shard. */
const expected: Record<string, string> = expectedCatalog['database-object']
const tables = Object.keys(expected).flatMap(object => /^relation \{schema\}\.(\w+)$/.exec(object)?.[1] ?? [])
const numbers = new Map(tables.map((name, at) => [name, `_${102_008 + at}`]))
const suffixes = [...numbers.values()]

/** The definitions of shards as PostgreSQL shows them. */
function shardsOf(definitions: Record<string, string>): Record<string, string> {
  return Object.fromEntries(
    Object.entries(definitions).map(([object, definition]) => {
      const table = tables.find(name => object.includes(`.${name}`)) ?? 'ledger'
      return [object + numbers.get(table), definition]
    }),
  )
}

const found = { ...expected, ...shardsOf(expectedOfShards(expected)) }

describe('in a bucket of Citus', () => {
  test('tables and shards are separated, and both are what the migrations create', () => {
    const { tables, shards } = separateShards(found, suffixes)
    expect(tables).toEqual(expected)
    expect(shards).toEqual(expectedOfShards(expected))
  })

  test('the numbers of new rows are of the worker', () => {
    const id = 'column {schema}.mikro_orm_migrations.id'
    const onWorker = { ...expected, [id]: expected[id]!.replace('nextval(', 'worker_nextval(') }
    expect(onWorker).not.toEqual(expected)
    expect(separateShards(onWorker, suffixes).tables).toEqual(expected)
  })

  test('each shard has the triggers of its table, except for those on TRUNCATE', () => {
    const shards = expectedOfShards(expected)
    expect(shards).toHaveProperty(['trigger {schema}.transfer.transfer_is_immutable'])
    expect(shards).not.toHaveProperty(['trigger {schema}.transfer.transfer_is_kept'])
  })

  test('composite types have no shards', () => {
    const shards = Object.keys(expectedOfShards(expected))
    expect(expected).toHaveProperty(['column {schema}.posted_ledger.mac'])
    expect(shards.filter(object => /\.posted_(ledger|wallet|transfer)\b/.test(object))).toEqual([])
  })

  const trigger = `trigger {schema}.transfer.transfer_is_immutable${numbers.get('transfer')}`
  test.each([
    ['a disabled trigger of a shard', { [trigger]: `${found[trigger]}, enabled D` }],
    ['a trigger of a shard alone', { [`${trigger.replace('immutable', 'mine')}`]: 'CREATE TRIGGER' }],
    [
      'a second shard of a table',
      { 'relation {schema}.ledger_102008': 'table', 'relation {schema}.ledger_102009': 'table' },
    ],
  ])('%s differs', (_, planted) => {
    expect(separateShards({ ...found, ...planted }, suffixes).shards).not.toEqual(expectedOfShards(expected))
  })

  test('a table that is named like a shard, and is none, is found among the tables', () => {
    const { tables } = separateShards({ ...found, 'relation {schema}.ledger_7': 'table' }, suffixes)
    expect(tables).toHaveProperty(['relation {schema}.ledger_7'])
  })
})
