import { expect, test } from 'vitest'
import { createTestDatabase, execute } from '../../../test/setup/database.ts'
import { openOrm } from './database/orm.ts'
import { entities } from './entities.ts'

/**
 * What the migrations say and entities do not: constraints, indexes, triggers, functions and defaults, which PostgreSQL enforces and
 * integrity/verify/catalog/expected-catalog.json lists one by one. Tables, columns, types, nullability and primary keys must agree.
 */
const migrationsOnly = [
  /^alter table "\w+" drop constraint "\w+"$/,
  /^drop index "\w+"$/,
  /^drop trigger if exists "\w+" on "\w+"$/,
  /^drop function if exists "\w+"\([\w[\], ]*\)$/,
  /^alter table "\w+" alter column "\w+" drop default$/,
  // The values of the ledger's columns, which their domains check.
  /^alter table "(hold|journal|ledger|transfer|wallet)" add constraint "\w+_check" check \("\w+" in \('[\w.', ]+'\)\)$/,
  // Views have no entities.
  /^drop view if exists "\w+" cascade$/,
  // Identity columns, which the ORM takes for another kind of counter.
  /^alter table "(audit|refusal)" drop column "id"$/,
  /^alter table "(audit|refusal)" add "id" bigserial primary key$/,
]

/** What would have to change in the database for it to be what the entities say. */
async function differences(change?: string): Promise<string[]> {
  const database = await createTestDatabase()
  const orm = await openOrm(database.ownerUrl, { name: 'test', max: 1, entities })
  try {
    if (change) await execute(database.ownerUrl, change)
    const sql = await orm.schema.getUpdateSchemaSQL({ wrap: false })
    const statements = sql.split(/;\s*/).filter(Boolean)
    // The comparison reads the database, and sees what only migrations say.
    expect(statements).toContain('alter table "wallet" drop constraint "wallet_workspace_id_fkey"')
    return statements.filter(statement => !migrationsOnly.some(allowed => allowed.test(statement)))
  } finally {
    await orm.close(true)
    await database.drop()
  }
}

test('entities and the migrated schema agree', async () => {
  expect(await differences()).toEqual([])
})

test.each([
  ['a table without an entity', 'create table stray (id uuid primary key)'],
  ['a column that no entity has', 'alter table transfer add column category text'],
  ['a column that is missing', 'alter table audit drop column mac'],
  ['a column of another type', 'alter table checkpoint_part alter column part type bigint'],
  ['a column that may be null', 'alter table api_key alter column secret drop not null'],
])('%s is found', async (_, change) => {
  expect(await differences(change)).not.toEqual([])
})
