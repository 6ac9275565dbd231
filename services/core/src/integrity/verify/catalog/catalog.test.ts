import { countViolations } from '@workspace-wallet/contract'
import pg, { type Client, type CustomTypesConfig } from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { connect, createTestDatabase, query, schema, type TestDatabase } from '../../../../../../test/setup/database.ts'
import { inSchema } from '../../../database/schema.ts'
import { Findings } from '../findings/findings.ts'
import { type Catalog, checkCatalog, readCatalog } from './catalog.ts'
import { readNotes } from './notes.ts'
import { checkRoles } from './roles.ts'
import { checkUnaltered, readCatalogVersion } from './unaltered.ts'

// A superuser makes each change, the service's role reads the catalog in the same transaction, and all is rolled back.
let database: TestDatabase
let owner: Client
beforeAll(async () => {
  database = await createTestDatabase()
  owner = await connect(database.ownerUrl)
})
afterAll(async () => {
  await owner.end()
  await database.drop()
})

const types = { getTypeParser: () => (text: string) => text } as unknown as CustomTypesConfig
const reader = {
  schema,
  rows: async (sql: string) => (await owner.query({ text: inSchema(sql, schema), rowMode: 'array', types })).rows,
}

/** SQL and messages that say `public`, for the schema of the tables. */
const forSchema = (text: string) => text.replaceAll(/\bpublic(?=\.|'::)|(?<=schema |rename to )public/g, schema)

async function after<Result>(attack: string, look: () => Promise<Result>): Promise<Result> {
  await owner.query('begin; set local allow_system_table_mods = on')
  try {
    await owner.query(forSchema(attack))
    await owner.query('set local search_path = pg_catalog, pg_temp; set local session authorization wallet_service')
    return await look()
  } catch (error) {
    // Roles belong to the whole server: another test file has just granted something to this one.
    if ((error as Error).message !== 'tuple concurrently updated') throw error
    await owner.query('rollback')
    return await after(attack, look)
  } finally {
    await owner.query('rollback')
  }
}

/** "rule object" of each violation. */
const violationsAfter = (attack: string, declared: string[] | null = null) =>
  after(attack, async () => {
    const findings = new Findings()
    await checkCatalog(reader, findings)
    await checkRoles(reader, declared, findings)
    // More violations than a report lists would hide one that is not expected.
    expect(findings.violations).toHaveLength(countViolations(findings.brokenRules))
    return findings.violations.map(({ rule, ids }) => `${rule} ${ids.object}`)
  })

/** "object: definition" of each note. */
const notesAfter = (change: string) =>
  after(change, async () => {
    const notes = [...(await checkRoles(reader, null, new Findings())), ...(await readNotes(reader))]
    return notes.map(({ object, definition }) => `${object}: ${definition}`)
  })

test('expected-catalog.json matches what the migrations create; npm run golden regenerates it', async () => {
  const found = JSON.stringify(await after('', () => readCatalog(reader)))
  const catalog: Catalog = JSON.parse(found.replaceAll(new RegExp(`\\b${schema}\\b`, 'g'), '{schema}'))
  const sorted = Object.entries(catalog).map(([rule, objects]) => [
    rule,
    Object.fromEntries(Object.entries(objects).sort(([a], [b]) => (a < b ? -1 : 1))),
  ])
  const text = `${JSON.stringify(Object.fromEntries(sorted), null, 2)}\n`
  await expect(text).toMatchFileSnapshot('./expected-catalog.json')
})

test('an unaltered database has no violations, also with roles, schemas and settings that operators may add', async () => {
  expect(await violationsAfter('')).toEqual([])
  const others = `
    create role reporter; grant select on all tables in schema public to reporter;
    create schema reports; create table reports.totals (total numeric);
    create function reports.encode(bytea, text) returns text language sql as 'select $2';
    alter database ${pg.escapeIdentifier(new URL(database.ownerUrl).pathname.slice(1))} set work_mem = '8MB';
    alter role wallet_service set log_statement = 'mod';
    alter table transfer set (autovacuum_vacuum_scale_factor = 0.01)`
  expect(await violationsAfter(others)).toEqual([])
})

const transfer = (object: string) => `database-object ${object.replace(' ', ' public.transfer.')}`
const builtins = 'database-object functions of PostgreSQL'
const here = () => pg.escapeIdentifier(new URL(database.ownerUrl).pathname.slice(1))

/** What an attacker runs, and the objects that are then reported. */
const attacks: [() => string, string[]][] = [
  // Row security.
  [() => 'alter table transfer enable row level security', ['database-object relation public.transfer']],
  [() => 'alter table transfer force row level security', ['database-object relation public.transfer']],
  [() => 'alter table wallet replica identity nothing', ['database-object relation public.wallet']],
  [() => 'alter sequence audit_id_seq maxvalue 1000', ['database-object relation public.audit_id_seq']],
  [() => 'alter table audit alter before set storage plain', ['database-object column public.audit.before']],
  [() => 'create policy more on transfer using (true)', [transfer('policy more')]],
  // Triggers, rules and functions.
  [() => 'alter table transfer disable trigger transfer_is_immutable', [transfer('trigger transfer_is_immutable')]],
  [() => 'alter table transfer enable replica trigger transfer_is_kept', [transfer('trigger transfer_is_kept')]],
  [() => 'drop trigger transfer_is_kept on transfer', [transfer('trigger transfer_is_kept')]],
  [
    () => `drop trigger transfer_is_kept on transfer;
      create trigger transfer_is_kept after truncate on transfer for each statement execute function refuse_change()`,
    [transfer('trigger transfer_is_kept')],
  ],
  [
    () => 'create trigger more before insert on transfer for each row execute function refuse_change()',
    [transfer('trigger more')],
  ],
  [
    () => `create or replace function refuse_change() returns trigger language plpgsql as 'begin return null; end'`,
    ['database-object function public.refuse_change()'],
  ],
  [
    () => 'alter function refuse_change() set search_path = elsewhere',
    ['database-object function public.refuse_change()'],
  ],
  [
    () => 'create role stranger; alter function refuse_change() owner to stranger',
    ['database-object function public.refuse_change()'],
  ],
  [() => 'create rule more as on insert to transfer do instead nothing', [transfer('rule more')]],
  [
    () => `create function refuse() returns event_trigger language plpgsql as 'begin end';
      create event trigger more on login execute function refuse()`,
    [
      'database-object event trigger more',
      'database-object function public.refuse()',
      'database-grant everybody on function public.refuse()',
    ],
  ],
  // Tables, columns and constraints.
  [
    () => 'alter type posted_wallet alter attribute balance type text',
    ['database-object column public.posted_wallet.balance'],
  ],
  [
    () => 'alter table journal drop constraint journal_check',
    ['database-object constraint public.journal.journal_check'],
  ],
  [
    () => 'alter domain positive_amount drop constraint positive_amount_check',
    ['database-object domain public.positive_amount'],
  ],
  [
    () => `alter domain positive_amount drop constraint positive_amount_check;
      alter domain positive_amount add constraint positive_amount_check
        check (value > 0 and value < 1e38 and scale(value) <= 18) not valid`,
    ['database-object domain public.positive_amount'],
  ],
  [() => 'alter domain bounded_text set default 1', ['database-object domain public.bounded_text']],
  [() => 'create domain more as text', ['database-object domain public.more']],
  [
    () => 'alter table wallet alter constraint wallet_currency_fkey not enforced',
    [
      'database-object constraint public.wallet.wallet_currency_fkey',
      'database-object enforcement of public.wallet.wallet_currency_fkey',
    ],
  ],
  [
    () => 'alter table transfer alter source_mac drop not null',
    [transfer('column source_mac'), transfer('constraint transfer_source_mac_not_null')],
  ],
  [() => 'alter table transfer alter source_order_count set default 1', [transfer('column source_order_count')]],
  [() => 'alter table transfer add more numeric generated always as (amount * 2) stored', [transfer('column more')]],
  [() => 'alter table transfer alter actor type varchar(100)', [transfer('column actor')]],
  [() => 'create index more on transfer (amount)', ['database-object index public.more']],
  [
    () => `update pg_index set indisvalid = false where indexrelid = 'transfer_source'::regclass`,
    ['database-object index public.transfer_source'],
  ],
  [
    () => 'create schema aside; create table aside.more () inherits (transfer)',
    ['database-object inheritance of aside.more'],
  ],
  [
    () => 'create materialized view more as select 1 as one',
    ['database-object relation public.more', 'database-object rule public.more."_RETURN"'],
  ],
  [
    () => 'alter table transfer owner to wallet_service',
    ['database-object relation public.transfer', 'database-grant service on public.transfer'],
  ],
  // The view of entries.
  [
    () => `create or replace view flow with (security_invoker = true) as
      select workspace_id, source_wallet_id as wallet_id, source_sequence as sequence, 'OUT' as direction,
        source_order_count as order_count, source_balance as balance_after, source_mac as mac, id as transfer_id, type, biz_id,
        amount, currency, source_wallet_id, target_wallet_id, reference, hold_id, reverses_id, batch_id, remark, created_at
      from transfer`,
    ['database-object rule public.flow."_RETURN"'],
  ],
  [
    () => 'alter view flow rename source_wallet_id to x; alter view flow rename target_wallet_id to source_wallet_id',
    ['database-object rule public.flow."_RETURN"'],
  ],
  [() => 'alter view flow set (security_invoker = false)', ['database-object relation public.flow']],
  [() => 'alter view flow reset (security_invoker)', ['database-object relation public.flow']],
  [() => 'alter view flow set (security_barrier = true)', ['database-object relation public.flow']],
  [
    () => 'alter view flow owner to wallet_service',
    ['database-object relation public.flow', 'database-grant service on public.flow'],
  ],
  [
    () => 'create rule more as on insert to flow do instead delete from transfer',
    ['database-object rule public.flow.more'],
  ],
  [
    () => 'create trigger more instead of insert on flow for each row execute function refuse_change()',
    ['database-object trigger public.flow.more'],
  ],
  [
    () => 'drop view flow',
    [
      'database-object relation public.flow',
      'database-object rule public.flow."_RETURN"',
      'database-grant service on public.flow',
    ],
  ],
  [() => 'grant insert on flow to wallet_service', ['database-grant service on public.flow']],
  // Names that hide PostgreSQL's own.
  [() => 'create cast (bytea as uuid) with inout', ['database-object cast from bytea to uuid']],
  [
    () => `create function pg_catalog.encode(bytea, varchar) returns text language sql as 'select $2::text'`,
    ['database-object function encode(bytea,character varying)'],
  ],
  [
    () => 'create operator public.<> (leftarg = money, rightarg = integer, function = pg_catalog.cash_div_int4)',
    ['database-object operator public.<>(money,integer)'],
  ],
  // PostgreSQL's own objects, and new objects with OIDs in their range.
  [
    () => `insert into pg_class select (jsonb_populate_record(c, '{"oid": 15999, "relname": "wallet"}')).*
      from pg_class c where oid = 'pg_roles'::regclass`,
    [builtins],
  ],
  [
    () => `insert into pg_proc select (jsonb_populate_record(p, '{"oid": 15999, "proname": "rownumber"}')).*
      from pg_proc p where oid = 'int8eq'::regproc`,
    [builtins],
  ],
  [
    () => `insert into pg_operator select (jsonb_populate_record(o, '{"oid": 15999, "oprright": 1700}')).*
      from pg_operator o where oid = '=(bigint,bigint)'::regoperator`,
    [builtins],
  ],
  [
    () => `do 'begin execute $$create or replace view pg_catalog.pg_roles as $$ || replace(
      pg_get_viewdef($$pg_roles$$::regclass), $$pg_authid.rolsuper$$, $$false as rolsuper$$); end'`,
    [builtins],
  ],
  [
    () => 'create rule more as on insert to pg_policy do instead nothing',
    ['database-object rule more on table pg_policy'],
  ],
  [() => 'create domain public.numeric as text', ['database-object domain public."numeric"']],
  [() => "create collation public.c (locale = 'C')", ['database-object collation public.c']],
  [
    () => `create function pg_catalog.never(bigint, numeric) returns boolean language sql immutable as 'select false';
      create operator pg_catalog.= (leftarg = bigint, rightarg = numeric, function = pg_catalog.never)`,
    ['database-object function never(bigint,numeric)', 'database-object operator =(bigint,numeric)'],
  ],
  [
    () =>
      `create function pg_catalog.smaller(bigint, numeric) returns boolean language sql immutable as 'select true';
      create operator aside (leftarg = bigint, rightarg = numeric, function = pg_catalog.smaller)`.replaceAll(
        'aside',
        'public.<',
      ),
    ['database-object function smaller(bigint,numeric)', 'database-object operator public.<(bigint,numeric)'],
  ],
  [
    () => `alter operator family integer_ops using btree add function 1 (bigint, numeric) btint8cmp(bigint, bigint)`,
    [
      'database-object function 1 (bigint, numeric) of operator family integer_ops for access method btree: btint8cmp(bigint,bigint)',
    ],
  ],
  [() => 'create collation pg_catalog.more from "C"', ['database-object collation more']],
  [
    () => 'create text search configuration public.simple (copy = pg_catalog.simple)',
    ['database-object text search configuration public.simple'],
  ],
  [
    () => 'create schema aside; create statistics aside.more (ndistinct) on amount, currency from transfer',
    ['database-object statistics object aside.more'],
  ],
  [
    () => 'create schema aside; create table aside.more () inherits (pg_catalog.pg_proc)',
    ['database-object inheritance of aside.more'],
  ],
  // What belongs to an extension is reported as well: its owner can add any object to it.
  [
    () => `create schema aside; create extension tcn schema aside;
      create function public.encode(bytea, text) returns text language sql as 'select $2';
      alter extension tcn add function public.encode(bytea, text)`,
    [
      'database-object function public.encode(bytea,text)',
      'database-grant everybody on function public.encode(bytea,text)',
    ],
  ],
  [
    () => `create schema aside; create extension tcn schema aside; create table public.more ();
      alter extension tcn add table public.more`,
    ['database-object relation public.more'],
  ],
  [
    () => `create schema aside; create extension tcn schema aside; create cast (bytea as uuid) with inout;
      alter extension tcn add cast (bytea as uuid)`,
    ['database-object cast from bytea to uuid'],
  ],
  [
    () => `create schema aside; create extension tcn schema aside;
      create function aside.refuse() returns event_trigger language plpgsql as 'begin end';
      create event trigger more on login execute function aside.refuse();
      alter extension tcn add event trigger more`,
    ['database-object event trigger more'],
  ],
  [
    () => `create function pg_catalog.never(bigint, numeric) returns boolean language sql immutable as 'select false';
      create operator pg_catalog.= (leftarg = bigint, rightarg = numeric, function = pg_catalog.never);
      alter extension plpgsql add function pg_catalog.never(bigint, numeric);
      alter extension plpgsql add operator pg_catalog.=(bigint, numeric)`,
    ['database-object function never(bigint,numeric)', 'database-object operator =(bigint,numeric)'],
  ],
  [
    () => 'create extension tcn',
    [
      'database-object function public.triggered_change_notification()',
      'database-grant everybody on function public.triggered_change_notification()',
    ],
  ],
  // Operators that hide what is compared with OIDs: the check itself, and those that are added.
  [
    () => `create function pg_catalog.never(oid, integer) returns boolean language sql immutable as 'select false';
      create operator pg_catalog.>= (leftarg = oid, rightarg = integer, function = pg_catalog.never)`,
    ['database-object function never(oid,integer)', 'database-object operator >=(oid,integer)'],
  ],
  [
    () => `create function pg_catalog.never(oid, regnamespace) returns boolean language sql immutable as 'select false';
      create operator pg_catalog.= (leftarg = oid, rightarg = regnamespace, function = pg_catalog.never);
      create policy more on transfer using (true)`,
    [
      'database-object function never(oid,regnamespace)',
      'database-object operator =(oid,regnamespace)',
      transfer('policy more'),
    ],
  ],
  // PostgreSQL's own functions that are replaced.
  [
    () =>
      `create or replace function pg_catalog.lpad(text, integer) returns text language sql immutable as 'select $1'`,
    [builtins],
  ],
  [() => `update pg_language set lanplcallfoid = 'plpgsql_validator'::regproc where lanname = 'plpgsql'`, [builtins]],
  [() => `update pg_proc set prosrc = 'plpgsql_validator' where proname = 'plpgsql_call_handler'`, [builtins]],
  [() => `update pg_proc set prosupport = 'textlike_support'::regproc where oid = 'int8eq'::regproc`, [builtins]],
  [() => `update pg_aggregate set aggmfinalfn = 0 where aggfnoid = 'sum(bigint)'::regprocedure`, [builtins]],
  // Rights.
  [() => 'grant update on transfer to wallet_service', ['database-grant service on public.transfer']],
  [() => 'grant update (amount) on transfer to wallet_service', ['database-grant service on public.transfer.amount']],
  [() => 'revoke insert on workspace from wallet_service', ['database-grant service on public.workspace']],
  [() => 'grant insert on transfer to wallet_service', ['database-grant service on public.transfer']],
  [() => 'grant select on transfer to wallet_service with grant option', ['database-grant service on public.transfer']],
  [() => 'grant insert on wallet to public', ['database-grant everybody on public.wallet']],
  [
    () => 'create role stranger; grant delete on transfer to stranger',
    ['database-grant role stranger on public.transfer'],
  ],
  [() => 'grant create on schema public to wallet_service', ['database-grant service on schema public']],
  [() => 'grant usage on sequence audit_id_seq to wallet_service', ['database-grant service on public.audit_id_seq']],
  [() => 'alter role wallet_service bypassrls', ['database-grant service']],
  [() => 'grant pg_write_all_data to wallet_service', ['database-grant service as a member of pg_write_all_data']],
  [
    () => 'grant set on parameter session_replication_role to wallet_service',
    ['database-grant service on parameter session_replication_role'],
  ],
  [
    // The names of this report, as names of roles.
    () => `create role service; grant insert on currency to service;
      create role owner; alter table currency owner to owner`,
    [
      'database-object relation public.currency',
      'database-grant role service on public.currency',
      'database-role role owner',
    ],
  ],
  [() => 'grant create on schema pg_catalog to wallet_service', ['database-grant service on schema pg_catalog']],
  [
    () => 'grant execute on function lo_export(oid, text) to wallet_service',
    ['database-grant service on function lo_export(oid,text)'],
  ],
  // Roles that can write.
  [() => 'create role stranger superuser', ['database-role role stranger']],
  [() => 'create role stranger; grant pg_write_all_data to stranger', ['database-role role stranger']],
  [() => 'create role stranger; grant pg_execute_server_program to stranger', ['database-role role stranger']],
  [() => 'create role stranger; grant wallet_service to stranger', ['database-role role stranger']],
  [
    () =>
      'create role stranger; create role friend; grant pg_write_server_files to friend; grant friend to stranger with inherit false',
    ['database-role role friend', 'database-role role stranger'],
  ],
  [() => `create role stranger; alter database ${here()} owner to stranger`, ['database-role role stranger']],
  [() => 'create role stranger; alter schema public owner to stranger', ['database-role role stranger']],
  [
    () => 'create role stranger; grant execute on function lo_export(oid, text) to stranger',
    ['database-role role stranger'],
  ],
  [
    () => 'create role stranger; grant alter system on parameter shared_preload_libraries to stranger',
    ['database-role role stranger'],
  ],
  // Settings.
  [() => 'alter role wallet_service set search_path = elsewhere', ['database-setting service: search_path']],
  [
    () => `alter role wallet_service in database ${here()} set row_security = off`,
    ['database-setting service here: row_security'],
  ],
  [() => "alter role wallet_service set datestyle = 'German'", ['database-setting service: DateStyle']],
  [() => 'alter role wallet_service set role = wallet_service', ['database-setting service: role']],
  [
    () => `do 'begin end'; alter role wallet_service in database ${here()} set plpgsql.extra_errors = 'all'`,
    ['database-setting service here: plpgsql.extra_errors'],
  ],
  [() => `alter database ${here()} set search_path = elsewhere`, ['database-setting database here: search_path']],
  [
    () => 'alter role all set session_preload_libraries = auto_explain',
    ['database-setting database: session_preload_libraries'],
  ],
  [() => 'set local session_replication_role = replica', ['database-setting session_replication_role']],
]

describe('each altered object is reported, and nothing else is', () => {
  test.each(attacks.map(([sql, expected]) => ({ sql, expected, name: sql.toString().slice(6) })))(
    '$name',
    async ({ sql, expected }) => {
      expect(await violationsAfter(sql())).toEqual(expected.map(forSchema))
    },
  )
})

test('what makes the statements of the check fail is reported before they do', () =>
  after(
    `create function pg_catalog.fail(regnamespace) returns oid language plpgsql as 'begin raise exception $$failed$$; end';
     update pg_cast set castfunc = 'fail'::regproc, castmethod = 'f'
       where castsource = 'regnamespace'::regtype and casttarget = 'oid'::regtype`,
    async () => {
      const findings = new Findings()
      await expect(checkCatalog(reader, findings)).rejects.toThrow('failed')
      const reported = findings.violations.map(({ rule, ids }) => `${rule} ${ids.object}`)
      expect(reported).toEqual(['database-object function fail(regnamespace)', builtins])
    },
  ))

test('a role that is declared may write, and no other one', async () => {
  const everyTable = await query(
    database.ownerUrl,
    forSchema(`select relname from pg_class where relnamespace = 'public'::regnamespace and relkind in ('r', 'v')`),
  )
  const changesOwner = `create role stranger; ${everyTable.map(({ relname }) => `alter table ${relname} owner to stranger;`).join(' ')}
    do $$ declare f regprocedure; t regtype; begin
      for t in select t.oid from pg_type t left join pg_class c on c.oid = t.typrelid
          where t.typnamespace = 'public'::regnamespace and (t.typtype = 'd' or c.relkind = 'c') loop
        execute format('alter type %s owner to stranger', t); end loop;
      for f in select oid from pg_proc where pronamespace = 'public'::regnamespace loop
        execute format('alter function %s owner to stranger', f); end loop; end $$`
  // By default the owner of the tables may, whoever it is.
  expect(await violationsAfter(changesOwner)).toEqual([])
  expect(await violationsAfter(changesOwner, ['postgres'])).toEqual(['database-role role stranger'])
  expect(await violationsAfter('create role dba superuser', ['postgres', 'dba'])).toEqual([])
  expect(await violationsAfter('', ['dba'])).toEqual(['database-role role postgres'])
})

test('what operators may add is noted', async () => {
  const usual = ['role postgres: superuser']
  expect((await notesAfter('')).filter(note => !note.startsWith('module tcn: '))).toEqual(usual)
  const changes = `
    create role dba superuser; create role standby replication login; create role dumper; grant pg_read_all_data to dumper;
    create role manager createrole; create role reporter; grant select on all tables in schema public to reporter;
    create schema aside; create extension pg_stat_statements schema aside; create extension postgres_fdw schema aside;
    create server elsewhere foreign data wrapper postgres_fdw; create publication changes for all tables`
  expect((await notesAfter(changes)).filter(note => !note.startsWith('module '))).toEqual([
    'role dba: superuser',
    'role dumper: member of pg_read_all_data',
    'role manager: creates roles',
    ...usual,
    'role standby: replicates the server',
    'extension pg_stat_statements: 1.12 in the schema aside',
    'extension postgres_fdw: 1.2 in the schema aside',
    'publication changes: of all tables',
    'foreign server elsewhere: postgres_fdw',
  ])
})

/** Changes that are undone at once: names mean something else only while the verification reads. */
const passing = [
  'alter view flow set (security_invoker = false); alter view flow set (security_invoker = true)',
  'alter table transfer rename to hidden; create view transfer as table hidden; drop view transfer; alter table hidden rename to transfer',
  'alter schema public rename to hidden; create schema public; drop schema public; alter schema hidden rename to public',
  'alter table transfer enable row level security; alter table transfer disable row level security',
  'create rule more as on insert to transfer do also nothing; drop rule more on transfer',
  `update pg_operator set oprcode = 'int8ne'::regproc where oid = '=(bigint,bigint)'::regoperator;
   update pg_operator set oprcode = 'int8eq'::regproc where oprcode = 'int8ne'::regproc and oprname = '='`,
]

test('a change during the verification is reported, even if it was undone', async () => {
  const before = await after('', () => readCatalogVersion(reader))
  const violationsDuring = (attack: string) =>
    after(attack, async () => {
      const findings = new Findings()
      await checkCatalog(reader, findings)
      await checkUnaltered(before, reader, findings)
      return findings.violations.map(({ rule, ids }) => `${rule} ${ids.object}`)
    })
  expect(await violationsDuring('')).toEqual([])
  expect(
    await violationsDuring('create schema aside; create table aside.more (); analyze transfer; reindex table transfer'),
  ).toEqual([])
  for (const attack of passing)
    expect(await violationsDuring(attack), attack).toEqual([`database-object schema ${schema}`])
})
