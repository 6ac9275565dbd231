import { pgCatalog } from './builtins.ts'

// Both sides of every operator have the same type, so that no operator that somebody adds to pg_catalog is called in its place.
const schemaOid = `'{schema}'::regnamespace::oid`
const serviceRole = '(select oid from pg_roles where rolname = session_user)'
const ownerRole = `(select relowner from pg_class where oid = to_regclass('{schema}.ledger')::oid)`
const thisDatabase = '(select oid from pg_database where datname = current_database())'
const nameOfRole = (role: string) =>
  `case ${role} when 0::oid then 'everybody' when ${serviceRole} then 'service' when ${ownerRole} then 'owner'
     else 'role ' || quote_ident(pg_get_userbyid(${role})::text) end`

export const objectQueries = [
  `select 'relation ' || c.oid::regclass::text, concat_ws(', ',
     case c.relkind when 'r' then 'table' when 'S' then 'sequence' when 'v' then 'view' when 'm' then 'materialized view'
       when 'f' then 'foreign table' when 'p' then 'partitioned table' else 'of the kind ' || c.relkind::text end,
     case c.relpersistence when 'p' then null else 'not permanent' end,
     'of ' || ${nameOfRole('c.relowner')},
     'access method ' || a.amname::text,
     case when c.relrowsecurity then 'row security' end,
     case when c.relforcerowsecurity then 'row security for its owner too' end,
     case when c.relkind in ('r', 'p') and c.relreplident = 'n' then 'no replica identity' end,
     -- Citus gives each node a range of its own, of which none ends earlier.
     (select concat_ws(' ', 'by', s.seqincrement, case when s.seqmax < 281474976710656::bigint then 'up to ' || s.seqmax::text end,
        case when s.seqcycle then 'in cycles' end)
      from pg_sequence s where s.seqrelid = c.oid),
     -- Of a view, they say whose rights it has. Those of a table, such as for vacuum, change no row.
     case c.relkind when 'v' then 'options ' || array_to_string(c.reloptions, ' ') end)
   from pg_class c left join pg_am a on a.oid = c.relam
   where c.relkind not in ('i', 'I', 't') and c.relnamespace = ${schemaOid}`,

  `select 'column ' || c.oid::regclass::text || '.' || quote_ident(a.attname::text), concat_ws(', ',
     format_type(a.atttypid, a.atttypmod),
     case when l.oid is not null then 'collation ' || l.oid::regcollation::text end,
     case when a.attnotnull then 'not null' end,
     'default ' || pg_get_expr(d.adbin, d.adrelid),
     -- A value that is neither compressed nor stored apart has to fit into a page.
     case when a.attstorage = 'p' and t.typstorage <> 'p' then 'storage plain' end,
     case a.attgenerated when '' then null else 'generated ' || a.attgenerated::text end,
     case a.attidentity when '' then null else 'identity ' || a.attidentity::text end)
   from pg_class c
   join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
   left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
   left join pg_type t on t.oid = a.atttypid
   left join pg_collation l on l.oid = a.attcollation and a.attcollation <> t.typcollation
   where c.relkind in ('r', 'p', 'f', 'c') and c.relnamespace = ${schemaOid}`,

  `select 'constraint ' || c.conrelid::regclass::text || '.' || quote_ident(c.conname::text), pg_get_constraintdef(c.oid)
   from pg_constraint c join pg_class r on r.oid = c.conrelid
   where r.relnamespace = ${schemaOid}`,

  `select 'domain ' || t.oid::regtype::text, concat_ws(', ', format_type(t.typbasetype, t.typtypmod), 'of ' || ${nameOfRole('t.typowner')},
     case when t.typnotnull then 'not null' end, 'default ' || t.typdefault,
     case when t.typcollation <> b.typcollation then 'collation ' || t.typcollation::regcollation::text end,
     (select string_agg(c.conname::text || ' ' || pg_get_constraintdef(c.oid), ', ' order by c.conname)
      from pg_constraint c where c.contypid = t.oid))
   from pg_type t join pg_type b on b.oid = t.typbasetype
   where t.typtype = 'd' and t.typnamespace = ${schemaOid}`,

  // Foreign keys are enforced by triggers, each of which can be disabled.
  `select 'enforcement of ' || c.conrelid::regclass::text || '.' || quote_ident(c.conname::text), string_agg(t.tgenabled::text, '')
   from pg_constraint c join pg_trigger t on t.tgconstraint = c.oid and t.tgisinternal
   where c.connamespace = ${schemaOid} group by c.oid`,

  `select 'index ' || i.indexrelid::regclass::text, concat_ws(', ', pg_get_indexdef(i.indexrelid),
     case when not i.indisvalid then 'not valid' end,
     case when not i.indisready then 'not ready' end,
     case when not i.indislive then 'being dropped' end)
   from pg_index i join pg_class r on r.oid = i.indrelid
   where r.relnamespace = ${schemaOid} and r.relkind <> 't'`,

  `select 'trigger ' || t.tgrelid::regclass::text || '.' || quote_ident(t.tgname::text),
     concat_ws(', ', pg_get_triggerdef(t.oid), case t.tgenabled when 'O' then null else 'enabled ' || t.tgenabled::text end)
   from pg_trigger t join pg_class r on r.oid = t.tgrelid
   where r.relnamespace = ${schemaOid} and not t.tgisinternal`,

  `select 'rule ' || w.ev_class::regclass::text || '.' || quote_ident(w.rulename::text), pg_get_ruledef(w.oid)
   from pg_rewrite w join pg_class r on r.oid = w.ev_class
   where r.relnamespace = ${schemaOid}`,

  `select 'policy ' || p.polrelid::regclass::text || '.' || quote_ident(p.polname::text),
     concat_ws(', ', case when p.polpermissive then 'permissive' else 'restrictive' end, 'for ' || p.polcmd::text,
       'using ' || pg_get_expr(p.polqual, p.polrelid), 'with check ' || pg_get_expr(p.polwithcheck, p.polrelid))
   from pg_policy p join pg_class r on r.oid = p.polrelid where r.relnamespace = ${schemaOid}`,

  `select 'function ' || p.oid::regprocedure::text, concat_ws(', ', 'of ' || ${nameOfRole('p.proowner')},
     case p.prokind when 'f' then pg_get_functiondef(p.oid) when 'p' then pg_get_functiondef(p.oid)
       else 'an aggregate or a window function' end)
   from pg_proc p where p.pronamespace = ${schemaOid}`,
]

const privilegesOf = (acl: string, kind: string, owner: string) =>
  `lateral (
     select x.grantee,
       string_agg(lower(x.privilege_type) || case when x.is_grantable then ' with grant option' else '' end, ', '
         order by x.privilege_type) as privileges
     from aclexplode(coalesce(${acl}, acldefault(${kind}, ${owner}))) x
     where x.grantee <> ${owner}
       -- Other roles may read, for backups and reports.
       and (x.grantee in (0::oid, ${serviceRole}) or x.privilege_type not in ('SELECT', 'USAGE') or x.is_grantable)
     group by x.grantee) g`

export const grantQueries = [
  `select ${nameOfRole('g.grantee')} || ' on ' || c.oid::regclass::text, g.privileges
   from pg_class c,
     ${privilegesOf('c.relacl', `case c.relkind when 'S' then 's'::"char" else 'r'::"char" end`, 'c.relowner')}
   where c.relnamespace = ${schemaOid} and c.relkind not in ('i', 'I', 't')`,

  `select ${nameOfRole('g.grantee')} || ' on ' || c.oid::regclass::text || '.' || quote_ident(a.attname::text), g.privileges
   from pg_class c join pg_attribute a on a.attrelid = c.oid and not a.attisdropped and a.attacl is not null,
     ${privilegesOf('a.attacl', `'c'`, 'c.relowner')}
   where c.relnamespace = ${schemaOid}`,

  `select ${nameOfRole('g.grantee')} || ' on function ' || p.oid::regprocedure::text, g.privileges
   from pg_proc p, ${privilegesOf('p.proacl', `'f'`, 'p.proowner')}
   where p.pronamespace = ${schemaOid}`,

  // What PostgreSQL's own functions may do, such as to write files, is not for the service.
  `select ${nameOfRole('g.grantee')} || ' on function ' || p.oid::regprocedure::text, g.privileges
   from pg_proc p, ${privilegesOf('p.proacl', `'f'`, 'p.proowner')}
   where p.pronamespace = ${pgCatalog}::oid and p.proacl is not null and g.grantee in (0::oid, ${serviceRole})`,

  `select ${nameOfRole('g.grantee')} || ' on schema ' || n.nspname::text, g.privileges
   from pg_namespace n, ${privilegesOf('n.nspacl', `'n'`, 'n.nspowner')} where n.oid in (${schemaOid}, ${pgCatalog}::oid)`,

  `select 'default privileges ' || oid::text, defaclacl::text from pg_default_acl
   where defaclnamespace in (0::oid, ${schemaOid})`,

  `select ${nameOfRole('g.grantee')} || ' on parameter ' || p.parname, g.privileges
   from pg_parameter_acl p, lateral (
     select x.grantee, string_agg(lower(x.privilege_type), ', ') as privileges from aclexplode(p.paracl) x
     where x.grantee in (0::oid, ${serviceRole}) group by x.grantee) g`,

  `select 'service', concat_ws(', ', case when rolsuper then 'superuser' end, case when rolbypassrls then 'bypasses row security' end,
     case when rolcreaterole then 'creates roles' end, case when rolcreatedb then 'creates databases' end,
     case when rolreplication then 'replicates' end)
   from pg_roles where oid = ${serviceRole}`,

  `select 'service as a member of ' || m.roleid::regrole::text, 'member' from pg_auth_members m where m.member = ${serviceRole}`,
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

export const settingQueries = [
  `select case s.setrole when 0::oid then 'database' else 'service' end
     || case s.setdatabase when 0::oid then '' else ' here' end || ': ' || split_part(c, '=', 1),
     -- A role may give its settings huge values.
     substr(c, strpos(c, '=') + 1, 1000)
   from pg_db_role_setting s, unnest(s.setconfig) c
   where s.setdatabase in (0::oid, ${thisDatabase})
     and s.setrole in (0::oid, ${serviceRole})
     and (split_part(c, '=', 1) in (${checkedSettings.map(name => `'${name}'`).join(', ')})
       -- The service's role may change these itself, and the migration step resets them.
       or s.setrole <> 0::oid and not exists (
         select from pg_settings p where p.name = split_part(c, '=', 1) and p.context not in ('user', 'backend')))`,

  `select 'session_replication_role', current_setting('session_replication_role')`,
]
