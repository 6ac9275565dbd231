import { expect, test } from 'vitest'
import { execute, query } from '../../../../../../test/setup/database.ts'
import {
  change,
  damage,
  inCopy,
  useBooks,
  verify,
  verifyRows,
} from '../../../../../../test/setup/verification/copies.ts'
import { snapshotClient } from '../../../database/snapshot.ts'

useBooks()

test('reports a policy that hides rows from everybody but the verification, and tables that it cannot read', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await execute(
      ownerUrl,
      `alter table transfer enable row level security;
       create policy hidden on transfer for select to wallet_service
         using (current_setting('application_name') = 'core verify' or position < 9)`,
    )
    const report = await verify(serviceUrl)
    expect(report.ok).toBe(false)
    expect(report.violations.map(({ rule, ids, message }) => `${rule} ${ids.object ?? message}`)).toEqual([
      'database-object policy public.transfer.hidden',
      'database-object relation public.transfer',
      'database-read query would be affected by row-level security policy for table "transfer"',
    ])
  }))

/**
 * Operators on two different types, which PostgreSQL prefers to converting one side to the type of the other. Each raises an
 * exception, so that no statement can use one unnoticed.
 */
const intruders = `
  do $do$
  declare
    types constant regtype[] := '{oid,regclass,regnamespace,regtype,name,text,varchar,"\\"char\\"",smallint,integer,bigint,numeric,
      uuid,bytea,date,timestamptz}';
    place integer := 0;
    symbol text;
    leftmost regtype;
    rightmost regtype;
  begin
    foreach symbol in array '{=,<>,<,>,<=,>=,||,+,-}'::text[] loop
      foreach leftmost in array types loop
        foreach rightmost in array types loop
          continue when leftmost::text = rightmost::text or to_regoperator(format('pg_catalog.%s(%s,%s)', symbol, leftmost, rightmost)) is not null;
          place := place + 1;
          execute format($$create function pg_catalog.intruder_%s(%s, %s) returns %s language plpgsql as
            'begin raise exception ''%s of %s and %s''; end'$$, place, leftmost, rightmost,
            case symbol when '||' then 'text' when '+' then 'numeric' when '-' then 'numeric' else 'boolean' end, symbol, leftmost, rightmost);
          execute format('create operator pg_catalog.%s (leftarg = %s, rightarg = %s, function = pg_catalog.intruder_%s)',
            symbol, leftmost, rightmost, place);
        end loop;
      end loop;
    end loop;
  end $do$`

test('no operator that was added to pg_catalog is called, and none hides a violation', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await damage(ownerUrl, `${change('small', 'order_count = order_count + 1')}; update hold set number = number + 100`)
    const before = (await verify(serviceUrl)).violations
    expect(before.map(({ rule }) => rule)).toEqual(expect.arrayContaining(['transfer-order-count', 'hold-number']))
    const [{ added }] = (await query(
      ownerUrl,
      `${intruders}; select count(*)::int as added from pg_operator where oprcode::text like 'intruder_%'`,
    )) as [{ added: number }]
    expect(added).toBeGreaterThan(1_000)
    const { brokenRules, violations } = await verify(serviceUrl)
    expect(violations.filter(({ rule }) => rule !== 'database-object')).toEqual(before)
    // Each is reported with its function.
    expect(brokenRules[0]).toEqual({ rule: 'database-object', violations: 2 * added })
  }))

test('rows that the migration step has not written are reported', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await damage(
      ownerUrl,
      `update currency set decimals = 3 where code = 'USD'; insert into currency values ('XXX', 2);
       insert into mikro_orm_migrations (name) values ('later'); update chain_key set fingerprint = ''`,
    )
    const { violations } = await verify(serviceUrl)
    expect(violations.map(({ rule, ids, message }) => `${rule} ${ids.object}: ${message}`)).toEqual([
      'database-row table currency: it lacks USD 2',
      'database-row table currency: it has USD 3, XXX 2, which the service did not write',
      'database-row table mikro_orm_migrations: it has later, which the service did not write',
      expect.stringMatching(/^database-row table chain_key: it lacks \\x[0-9a-f]{64}$/),
      'database-row table chain_key: it has \\x, which the service did not write',
    ])
  }))

test('reports a view in place of a table, although its rows are correct', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await execute(
      ownerUrl,
      `alter table transfer rename to transfer_kept;
       create view transfer as select * from transfer_kept;
       grant select on transfer to wallet_service`,
    )
    const { ok, violations } = await verify(serviceUrl)
    expect(ok).toBe(false)
    expect(violations.every(({ rule }) => rule.startsWith('database-'))).toBe(true)
  }))

test('the verification reads the table, not the view of entries', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    await execute(
      ownerUrl,
      `alter view flow rename to flow_kept; alter table transfer rename to transfer_kept;
       create table transfer as table transfer_kept;
       create view flow with (security_invoker = true) as select * from flow_kept;
       grant select on transfer to wallet_service`,
    )
    const service = snapshotClient(serviceUrl, 'test')
    await service.connect()
    expect(await verifyRows(service)).toMatchObject({ ok: true })
    await execute(ownerUrl, change('back', 'source_balance = 61.50'))
    expect(await verifyRows(service)).toMatchObject({ ok: false })
    await service.end()
  }))
