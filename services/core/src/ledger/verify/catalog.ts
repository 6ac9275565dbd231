import { createHash } from 'node:crypto'
import type { LedgerRule } from '@workspace-wallet/contract'
import type { TextRow } from '../../database/snapshot.ts'
import expected from './expected-catalog.json' with { type: 'json' }
import type { Findings } from './findings.ts'

/** The snapshot of a verification, or another connection. */
type Reader = { rows(sql: string): Promise<TextRow[]> }

/**
 * The definition of each object that the migration step creates, by the name of the object. Roles are called "owner" and
 * "service" here, whatever their names in this database are.
 */
export type Catalog = Record<CatalogRule, Record<string, string>>
type CatalogRule = Extract<LedgerRule, keyof typeof expected>

/**
 * Compares the definitions in the database with those that the migrations create (expected-catalog.json, written by
 * `npm run golden`). A policy, trigger, grant or setting can show the verification other rows than the service, so any
 * object that the migrations did not create is a violation.
 */
export async function checkCatalog(snapshot: Reader, findings: Findings): Promise<void> {
  const found = await readCatalog(snapshot)
  for (const [rule, objects] of Object.entries(expected) as [CatalogRule, Record<string, string>][]) {
    const names = new Set([...Object.keys(objects), ...Object.keys(found[rule])])
    for (const object of [...names].sort()) {
      const message = differenceOf(objects[object], found[rule][object])
      if (message) findings.add({ rule, message, ids: { object } })
    }
  }
}

export async function readCatalog(snapshot: Reader): Promise<Catalog> {
  const read = async (queries: string[]) => {
    const rows = []
    for (const sql of queries) rows.push(...(await snapshot.rows(sql)))
    return Object.fromEntries(rows.map(([object, definition]) => [object!, definition ?? '']))
  }
  return {
    'database-object': { ...(await read(objectQueries)), 'functions of PostgreSQL': await digestOfBuiltins(snapshot) },
    'database-grant': await read(grantQueries),
    'database-setting': await read(settingQueries),
  }
}

/**
 * A digest of the version of each definition. A statement reads rows as of the snapshot, but resolves table names when it
 * runs: renaming tables in between shows it other rows. So the digest must be the same after the verification.
 */
export async function readCatalogVersion(snapshot: Reader): Promise<string> {
  const digest = createHash('sha256')
  const ours = (schema: string) => `${schema} in (${publicSchema}, 'pg_catalog'::regnamespace)`
  for (const sql of [
    `select oid, xmin from pg_namespace where nspname in ('public', 'pg_catalog') order by oid`,
    // Not indexes: they may be rebuilt at any time.
    `select oid, xmin from pg_class where ${ours('relnamespace')} and relkind not in ('i', 'I', 't') order by oid`,
    `select oid, xmin from pg_proc where ${ours('pronamespace')} order by oid`,
    `select oid, xmin from pg_operator where ${ours('oprnamespace')} order by oid`,
    `select oid, xmin from pg_type where ${ours('typnamespace')} order by oid`,
    `select oid, xmin from pg_cast order by oid`,
    `select oid, xmin from pg_rewrite where ev_class in (
       select oid from pg_class where ${ours('relnamespace')}) order by oid`,
  ])
    digest.update(JSON.stringify(await snapshot.rows(sql)))
  return digest.digest('hex')
}

/** @param before the result of `readCatalogVersion` in the snapshot that was verified */
export async function checkUnaltered(before: string, now: Reader, findings: Findings): Promise<void> {
  if ((await readCatalogVersion(now)) === before) return
  const message = 'it was altered during the verification, which may have read other tables: run ledger verify again'
  findings.add({ rule: 'database-object', message, ids: { object: 'schema public' } })
}

function differenceOf(expected: string | undefined, found: string | undefined): string | null {
  if (expected === found) return null
  if (expected === undefined) return `no migration created it: ${shortened(found!)}`
  if (found === undefined) return 'it is missing'
  return `it is "${shortened(found)}", expected "${shortened(expected)}"`
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length > 300 ? `${line.slice(0, 300)}…` : line
}

const publicSchema = `'public'::regnamespace`
const serviceRole = '(select oid from pg_roles where rolname = session_user)'
const ownerRole = `(select relowner from pg_class where oid = to_regclass('public.ledger'))`
const thisDatabase = '(select oid from pg_database where datname = current_database())'
/** Objects that PostgreSQL itself creates have lower OIDs. */
const firstOwnId = 16384

const nameOfRole = (role: string) =>
  `case ${role} when 0 then 'everybody' when ${serviceRole} then 'service' when ${ownerRole} then 'owner'
     else pg_get_userbyid(${role}) end`

/** Objects of extensions such as pg_stat_statements are not compared. */
const isOfExtension = (catalog: string, id: string) =>
  `exists (select from pg_depend d where d.classid = '${catalog}'::regclass and d.objid = ${id} and d.deptype = 'e')`
const isStrange = (catalog: string, id: string, schema: string) =>
  `(${schema} = ${publicSchema} or (${schema} = 'pg_catalog'::regnamespace and ${id} >= ${firstOwnId}))
   and not ${isOfExtension(catalog, id)}`

const objectQueries = [
  `select 'relation ' || c.oid::regclass, concat_ws(', ',
     case c.relkind when 'r' then 'table' when 'S' then 'sequence' when 'v' then 'view' when 'm' then 'materialized view'
       when 'f' then 'foreign table' when 'p' then 'partitioned table' else 'of the kind ' || c.relkind::text end,
     case c.relpersistence when 'p' then null else 'not permanent' end,
     'of ' || ${nameOfRole('c.relowner')},
     'access method ' || a.amname,
     case when c.relrowsecurity then 'row security' end,
     case when c.relforcerowsecurity then 'row security for its owner too' end,
     -- Of a view, they say whose rights it has. Those of a table, such as for vacuum, change no row.
     case c.relkind when 'v' then 'options ' || array_to_string(c.reloptions, ' ') end)
   from pg_class c left join pg_am a on a.oid = c.relam
   where c.relkind not in ('i', 'I', 't') and ${isStrange('pg_class', 'c.oid', 'c.relnamespace')}`,

  `select 'column ' || c.oid::regclass || '.' || quote_ident(a.attname), concat_ws(', ',
     format_type(a.atttypid, a.atttypmod),
     case when l.oid is not null then 'collation ' || l.oid::regcollation end,
     case when a.attnotnull then 'not null' end,
     'default ' || pg_get_expr(d.adbin, d.adrelid),
     case a.attgenerated when '' then null else 'generated ' || a.attgenerated::text end,
     case a.attidentity when '' then null else 'identity ' || a.attidentity::text end)
   from pg_class c
   join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
   left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
   left join pg_type t on t.oid = a.atttypid
   left join pg_collation l on l.oid = a.attcollation and a.attcollation <> t.typcollation
   where c.relkind in ('r', 'p', 'f') and c.relnamespace = ${publicSchema} and not ${isOfExtension('pg_class', 'c.oid')}`,

  `select 'constraint ' || c.conrelid::regclass || '.' || quote_ident(c.conname), pg_get_constraintdef(c.oid)
   from pg_constraint c join pg_class r on r.oid = c.conrelid
   where r.relnamespace = ${publicSchema} and not ${isOfExtension('pg_class', 'r.oid')}`,

  // Foreign keys are enforced by triggers, each of which can be disabled.
  `select 'enforcement of ' || c.conrelid::regclass || '.' || quote_ident(c.conname), string_agg(t.tgenabled::text, '')
   from pg_constraint c join pg_trigger t on t.tgconstraint = c.oid and t.tgisinternal
   where c.connamespace = ${publicSchema} group by c.oid`,

  `select 'index ' || i.indexrelid::regclass, concat_ws(', ', pg_get_indexdef(i.indexrelid),
     case when not i.indisvalid then 'not valid' end,
     case when not i.indisready then 'not ready' end,
     case when not i.indislive then 'being dropped' end)
   from pg_index i join pg_class r on r.oid = i.indrelid
   where r.relnamespace = ${publicSchema} and r.relkind <> 't' and not ${isOfExtension('pg_class', 'r.oid')}`,

  `select 'trigger ' || t.tgrelid::regclass || '.' || quote_ident(t.tgname),
     concat_ws(', ', pg_get_triggerdef(t.oid), case t.tgenabled when 'O' then null else 'enabled ' || t.tgenabled::text end)
   from pg_trigger t join pg_class r on r.oid = t.tgrelid
   where r.relnamespace = ${publicSchema} and not t.tgisinternal`,

  `select 'rule ' || w.ev_class::regclass || '.' || quote_ident(w.rulename), pg_get_ruledef(w.oid)
   from pg_rewrite w join pg_class r on r.oid = w.ev_class
   where (r.relnamespace = ${publicSchema} or (r.relnamespace = 'pg_catalog'::regnamespace and r.relkind <> 'v'))
     and not ${isOfExtension('pg_class', 'r.oid')}`,

  `select 'policy ' || p.polrelid::regclass || '.' || quote_ident(p.polname),
     concat_ws(', ', case when p.polpermissive then 'permissive' else 'restrictive' end, 'for ' || p.polcmd::text,
       'using ' || pg_get_expr(p.polqual, p.polrelid), 'with check ' || pg_get_expr(p.polwithcheck, p.polrelid))
   from pg_policy p join pg_class r on r.oid = p.polrelid where r.relnamespace = ${publicSchema}`,

  `select 'inheritance of ' || inhrelid::regclass, 'from ' || inhparent::regclass
   from pg_inherits join pg_class c on c.oid = inhrelid join pg_class p on p.oid = inhparent
   where ${publicSchema} in (c.relnamespace, p.relnamespace)`,

  `select 'function ' || p.oid::regprocedure, concat_ws(', ', 'of ' || ${nameOfRole('p.proowner')},
     case p.prokind when 'f' then pg_get_functiondef(p.oid) when 'p' then pg_get_functiondef(p.oid)
       else 'an aggregate or a window function' end)
   from pg_proc p where ${isStrange('pg_proc', 'p.oid', 'p.pronamespace')}`,

  // A function of an extension with the name of a built-in function could be called in its place.
  `select 'function ' || p.oid::regprocedure, 'of an extension, with the name of a built-in function: move the extension to its own schema'
   from pg_proc p
   where p.pronamespace = ${publicSchema} and ${isOfExtension('pg_proc', 'p.oid')}
     and exists (select from pg_proc b where b.pronamespace = 'pg_catalog'::regnamespace and b.proname = p.proname
       and b.oid < ${firstOwnId})`,

  `select 'operator ' || o.oid::regoperator, 'calls ' || o.oprcode
   from pg_operator o where ${isStrange('pg_operator', 'o.oid', 'o.oprnamespace')}`,

  `select 'cast from ' || c.castsource::regtype || ' to ' || c.casttarget::regtype, 'calls ' || c.castfunc::regproc
   from pg_cast c where c.oid >= ${firstOwnId} and not ${isOfExtension('pg_cast', 'c.oid')}`,

  `select 'type ' || t.oid::regtype, 'of the kind ' || t.typtype::text
   from pg_type t left join pg_class r on r.oid = t.typrelid
   where coalesce(r.relkind, 'c') = 'c' and ${isStrange('pg_type', 't.oid', 't.typnamespace')}
     and not exists (select from pg_type e where e.typarray = t.oid)`,

  `select 'collation ' || l.oid::regcollation, 'of the provider ' || l.collprovider::text
   from pg_collation l where ${isStrange('pg_collation', 'l.oid', 'l.collnamespace')}`,

  `select 'operator class ' || o.oid || ' ' || o.opcname, 'for ' || o.opcintype::regtype
   from pg_opclass o where ${isStrange('pg_opclass', 'o.oid', 'o.opcnamespace')}`,

  `select 'event trigger ' || quote_ident(e.evtname), concat_ws(' ', 'on', e.evtevent, 'calls', e.evtfoid::regprocedure)
   from pg_event_trigger e where not ${isOfExtension('pg_event_trigger', 'e.oid')}`,

  `select 'subscription ' || quote_ident(subname), 'writes without the service' from pg_subscription where subdbid = ${thisDatabase}`,
]

const privilegesOf = (acl: string, kind: string, owner: string) =>
  `lateral (
     select x.grantee,
       string_agg(lower(x.privilege_type) || case when x.is_grantable then ' with grant option' else '' end, ', '
         order by x.privilege_type) as privileges
     from aclexplode(coalesce(${acl}, acldefault(${kind}, ${owner}))) x
     where x.grantee <> ${owner}
       -- Other roles may read, for backups and reports.
       and (x.grantee in (0, ${serviceRole}) or x.privilege_type not in ('SELECT', 'USAGE') or x.is_grantable)
     group by x.grantee) g`

const grantQueries = [
  `select ${nameOfRole('g.grantee')} || ' on ' || c.oid::regclass, g.privileges
   from pg_class c,
     ${privilegesOf('c.relacl', `case c.relkind when 'S' then 's'::"char" else 'r'::"char" end`, 'c.relowner')}
   where c.relnamespace = ${publicSchema} and c.relkind not in ('i', 'I', 't') and not ${isOfExtension('pg_class', 'c.oid')}`,

  `select ${nameOfRole('g.grantee')} || ' on ' || c.oid::regclass || '.' || quote_ident(a.attname), g.privileges
   from pg_class c join pg_attribute a on a.attrelid = c.oid and not a.attisdropped and a.attacl is not null,
     ${privilegesOf('a.attacl', `'c'`, 'c.relowner')}
   where c.relnamespace = ${publicSchema} and not ${isOfExtension('pg_class', 'c.oid')}`,

  `select ${nameOfRole('g.grantee')} || ' on function ' || p.oid::regprocedure, g.privileges
   from pg_proc p, ${privilegesOf('p.proacl', `'f'`, 'p.proowner')}
   where p.pronamespace = ${publicSchema} and not ${isOfExtension('pg_proc', 'p.oid')}`,

  `select ${nameOfRole('g.grantee')} || ' on schema public', g.privileges
   from pg_namespace n, ${privilegesOf('n.nspacl', `'n'`, 'n.nspowner')} where n.oid = ${publicSchema}`,

  `select 'default privileges ' || oid, defaclacl::text from pg_default_acl
   where defaclnamespace in (0, ${publicSchema})`,

  `select ${nameOfRole('g.grantee')} || ' on parameter ' || p.parname, g.privileges
   from pg_parameter_acl p, lateral (
     select x.grantee, string_agg(lower(x.privilege_type), ', ') as privileges from aclexplode(p.paracl) x
     where x.grantee in (0, ${serviceRole}) group by x.grantee) g`,

  `select 'service', concat_ws(', ', case when rolsuper then 'superuser' end, case when rolbypassrls then 'bypasses row security' end,
     case when rolcreaterole then 'creates roles' end, case when rolcreatedb then 'creates databases' end,
     case when rolreplication then 'replicates' end)
   from pg_roles where oid = ${serviceRole}`,

  `select 'service as a member of ' || m.roleid::regrole, 'member' from pg_auth_members m where m.member = ${serviceRole}`,
]

/** Settings that change what a statement means or calls. Operators may choose the others for the database, such as memory. */
const checkedSettings = [
  'search_path',
  'row_security',
  'session_replication_role',
  'role',
  'session_authorization',
  'session_preload_libraries',
  'local_preload_libraries',
  'default_transaction_read_only',
  'event_triggers',
  'transform_null_equals',
  'standard_conforming_strings',
]

const settingQueries = [
  `select case s.setrole when 0 then 'database' else 'service' end
     || case s.setdatabase when 0 then '' else ' here' end || ': ' || split_part(c, '=', 1),
     substr(c, strpos(c, '=') + 1)
   from pg_db_role_setting s, unnest(s.setconfig) c
   where s.setdatabase in (0, ${thisDatabase})
     and s.setrole in (0, ${serviceRole})
     and (split_part(c, '=', 1) in (${checkedSettings.map(name => `'${name}'`).join(', ')})
       -- The service's role may change these itself, and the migration step resets them.
       or s.setrole <> 0 and not exists (
         select from pg_settings p where p.name = split_part(c, '=', 1) and p.context not in ('user', 'backend')))`,

  `select 'session_replication_role', current_setting('session_replication_role')`,
]

/**
 * A digest of PostgreSQL's own functions, types, casts and operators, and of what they call. The service resolves names to
 * these first, and a superuser can replace them or give a new object the OID of an old one.
 */
async function digestOfBuiltins(snapshot: Reader): Promise<string> {
  const digest = createHash('sha256')
  // OIDs below 10000 are assigned in PostgreSQL's sources: they are the same in every database of a major version.
  for (const sql of [
    `select relname, relkind from pg_class
     where relnamespace = 'pg_catalog'::regnamespace and relkind not in ('i', 't') and oid < ${firstOwnId}
     order by relname collate "C"`,
    `select proname, proargtypes from pg_proc p
     where pronamespace = 'pg_catalog'::regnamespace and oid < ${firstOwnId} and not ${isOfExtension('pg_proc', 'oid')}
     order by proname collate "C", proargtypes::text collate "C"`,
    `select oprname, oprleft::oid, oprright::oid from pg_operator where oid < ${firstOwnId} order by oprname collate "C", oprleft::oid, oprright::oid`,
    // A view that this check reads.
    `select pg_get_viewdef('pg_catalog.pg_roles'::regclass)`,
    `select oid, proname, prosrc from pg_proc where oid < 10000 and prolang = 12 order by oid`,
    `select oid, typname, typinput::oid, typoutput::oid from pg_type where oid < 10000 order by oid`,
    `select oid, oprname, oprcode::oid from pg_operator where oid < 10000 order by oid`,
    `select castsource::oid, casttarget::oid, castfunc::oid, castcontext, castmethod from pg_cast
     where oid < ${firstOwnId} order by castsource::oid, casttarget::oid`,
    `select aggfnoid::oid, aggtransfn::oid, aggfinalfn::oid from pg_aggregate
     where aggfnoid::oid < 10000 order by aggfnoid::oid`,
    `select amproc::oid, amprocnum, amproclefttype::oid, amprocrighttype::oid from pg_amproc
     where oid < ${firstOwnId} and amproc::oid < 10000
     order by amproc::oid, amprocnum, amproclefttype::oid, amprocrighttype::oid`,
    `select amopopr::oid, amopstrategy, amoplefttype::oid, amoprighttype::oid from pg_amop
     where oid < ${firstOwnId} and amopopr::oid < 10000
     order by amopopr::oid, amopstrategy, amoplefttype::oid, amoprighttype::oid`,
  ])
    digest.update(JSON.stringify(await snapshot.rows(sql)))
  return digest.digest('hex')
}
