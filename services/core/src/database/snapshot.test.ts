import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import expectedCatalog from '../integrity/verify/catalog/expected-catalog.json' with { type: 'json' }
import { rowsHere } from './snapshot.ts'

const someone = '0198c000-0000-7000-8000-000000000001'

/** Their rows are read with those of all workspaces. `posted_ledger` is a type. */
const ofPlace = ['posted_ledger', 'workspace_move']
const tablesOfWorkspaces = [
  'workspace',
  ...Object.keys(expectedCatalog['database-object']).flatMap(
    object => /^column \{schema\}\.(\w+)\.workspace_id$/.exec(object)?.[1] ?? [],
  ),
].filter(table => !ofPlace.includes(table))

describe('rows of hidden workspaces', () => {
  test('there are tables with rows of workspaces', () => {
    expect(tablesOfWorkspaces).toContain('transfer')
  })

  test.each(tablesOfWorkspaces)('%s is read without them', table => {
    const column = table === 'workspace' ? 'id' : 'workspace_id'
    expect(rowsHere(`from {here}.${table} t`, new Set([someone]))).toBe(
      `from (select * from {schema}.${table} where ${column} is null or ${column} not in ('${someone}')) t`,
    )
    expect(rowsHere(`from {here}.${table} t`, new Set())).toBe(`from {schema}.${table} t`)
  })

  test('tables of the place are read whole', () => {
    expect(rowsHere('from {here}.operator o', new Set([someone]))).toBe('from {schema}.operator o')
  })

  test('statements of verifications and checkpoints name no table of workspaces with all of its rows', () => {
    const folder = join(import.meta.dirname, '../integrity')
    const files = globSync('**/*.ts', { cwd: folder, exclude: ['**/*.test.ts', 'verify/catalog/**'] })
    const named = new RegExp(`\\{schema\\}\\.(\\$|(${tablesOfWorkspaces.join('|')})\\b)`)
    for (const planted of ['from {schema}.transfer t', 'from {schema}.$']) expect(planted).toMatch(named)
    expect(files.length).toBeGreaterThan(20)
    expect(files.filter(file => named.test(readFileSync(join(folder, file), 'utf8')))).toEqual([])
  })
})
