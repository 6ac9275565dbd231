/** The statements of the runbooks run on the database of the service. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createTestDatabase, query, type TestDatabase } from '../setup/database.ts'
import { root } from '../setup/images.ts'

let database: TestDatabase
beforeAll(async () => {
  database = await createTestDatabase()
})
afterAll(() => database.drop())

test('every statement of a runbook that reads is one that PostgreSQL accepts', async () => {
  const page = await readFile(join(root, 'docs/operations.md'), 'utf8')
  const runbooks = page.slice(page.indexOf('### Alerts of the service'), page.indexOf('\n## Logs'))
  // Those that change something have the form `select pg_…(…)`.
  const statements = Array.from(runbooks.matchAll(/`(select (?!pg_)[^`]+)`/g), ([, sql]) => sql!)
  expect(statements.length).toBeGreaterThan(8)
  for (const sql of statements) await expect(query(database.ownerUrl, sql), sql).resolves.toBeDefined()
})
