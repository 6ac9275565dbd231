import { expect, test } from 'vitest'
import { connect, execute, query, schema } from '../../../../../test/setup/database.ts'
import {
  entry,
  hold,
  inCopy,
  transfer,
  useBooks,
  verifyRows,
  wallet,
  workspace,
} from '../../../../../test/setup/verification/copies.ts'
import { snapshotClient } from '../../database/snapshot.ts'

useBooks()

test('no column value stops the verification, and every change of a covered column is reported', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    // Hundreds of verifications: a new connection for each would take most of the time.
    const [owner, service] = [await connect(ownerUrl), snapshotClient(serviceUrl, 'test')]
    await service.connect()
    const rows = {
      transfer: `id = ${transfer('back')}`,
      wallet: `id = ${wallet('b')}`,
      ledger: `workspace_id = ${workspace('books')}`,
      hold: `id = ${hold('drawn')}`,
      journal: entry('escrow', 10),
      workspace: `id = ${workspace('books')}`,
      member: `user_id = 'gone'`,
      api_key: 'true',
      audit: `action = 'wallet.withdraw'`,
      spending_limit: `workspace_id = ${workspace('others')}`,
      webhook: `biz_id = 'hook'`,
    }
    // Columns that no MAC covers.
    const uncovered = [
      'api_key.last_used_at',
      'api_key.access_revision',
      'webhook.generation',
      'webhook.leased_generation',
      'webhook.failures',
      'webhook.failing_since',
      'webhook.last_status',
      'webhook.last_error',
      'webhook.last_attempt_at',
    ]
    await withoutConstraints(ownerUrl, Object.keys(rows))
    try {
      const unnoticed: string[] = []
      for (const [table, isIt] of Object.entries(rows))
        for (const { column, type } of await columnsOf(ownerUrl, table))
          for (const value of oddValues[type as keyof typeof oddValues].slice(hasManyRules(table) ? 0 : -1)) {
            const changed = await owner.query(
              `update ${table} set ${column} = ${value}
               where ${isIt} and ${column}${type === 'json' ? '::text' : ''} is distinct from ${value} returning 1`,
            )
            if (changed.rowCount === 0) continue
            const { ok } = await verifyRows(service)
            if (ok !== uncovered.includes(`${table}.${column}`)) unnoticed.push(`${table}.${column} = ${value}`)
            await owner.query(`delete from ${table}; insert into ${table} table sound_${table}`)
          }
      expect(unnoticed).toEqual([])
      expect(await verifyRows(service)).toMatchObject({ ok: true })
    } finally {
      await Promise.all([owner.end(), service.end()])
    }
  }))

/** For the other tables only the MAC is checked, so one value is enough. */
const hasManyRules = (table: string) =>
  ['transfer', 'wallet', 'ledger', 'hold', 'journal', 'spending_limit'].includes(table)

/** Values that a column may hold once its constraints are gone. */
const oddValues = {
  ARRAY: ['null', `'{}'`, `'{odd}'`],
  bigint: ['null', '0', '-1', '9223372036854775807'],
  bytea: ['null', `'\\x'::bytea`, `'\\x00'::bytea`],
  date: ['null', `'infinity'`, `'-infinity'`, `'0044-03-15 BC'`, `'12000-01-01'`],
  integer: ['null', '0', '2147483647'],
  json: ['null', `'null'`, `'{"odd": 1}'`],
  smallint: ['null', '0', '32767'],
  numeric: ['null', '0', '-1', `'NaN'`, `'Infinity'`, `'-Infinity'`, '1e-30', '1e40'],
  text: ['null', `''`, `'odd "\\ 😀'`],
  'timestamp with time zone': ['null', `'infinity'`, `'-infinity'`, `'0044-03-15 BC'`, `'12000-01-01'`],
  uuid: ['null', `'ffffffff-ffff-ffff-ffff-ffffffffffff'`, `'00000000-0000-0000-0000-000000000000'`],
}

/** Replaces tables with copies without constraints, indexes and triggers, and keeps another copy of each. Domains take any value. */
async function withoutConstraints(ownerUrl: string, tables: string[]): Promise<void> {
  await execute(
    ownerUrl,
    `do $$ declare c record; begin
       for c in select contypid::regtype as domain, conname from pg_constraint
           where contypid <> 0 and connamespace = '${schema}'::regnamespace loop
         execute format('alter domain %s drop constraint %I', c.domain, c.conname); end loop; end $$`,
  )
  for (const table of tables)
    await execute(
      ownerUrl,
      `
      create table sound_${table} as table ${table};
      drop table ${table} cascade;
      create table ${table} as table sound_${table}`,
    )
  await execute(ownerUrl, `grant select on all tables in schema ${schema} to wallet_service`)
}

async function columnsOf(ownerUrl: string, table: string): Promise<{ column: string; type: string }[]> {
  const sql = `select column_name as "column", data_type as type from information_schema.columns
    where table_schema = '${schema}' and table_name = '${table}'`
  return (await query(ownerUrl, sql)) as { column: string; type: string }[]
}
