import { createHash } from 'node:crypto'
import type { TextRow } from '../../../database/snapshot.ts'
import type { Reader } from './reader.ts'

/**
 * The statements of this file and of additions.ts compare nothing and call almost nothing: the program does. Whoever adds an
 * operator or a function to `pg_catalog` changes what a comparison or a call means if no other one has exactly its types.
 */

/** Whether PostgreSQL itself created an object, when the server was initialized. */
export const isBuiltin = (oid: string | null) => Number(oid) < 16_384

/** OIDs that PostgreSQL's sources assign: they are the same in every database of a major version. */
const isAssigned = (oid: string | null) => Number(oid) < 10_000

/** The OID of the schema `pg_catalog`. */
export const pgCatalog = '11'

/** What statements call and how their values become text, by an OID that is assigned. */
const assigned = [
  `select oid, proname, prolang, provariadic, prosupport::oid, prokind, prosecdef, proisstrict, proretset, provolatile,
     prorettype, proargtypes, proargmodes, prosrc, probin, prosqlbody, proconfig from pg_catalog.pg_proc`,
  `select oid, oprname, oprkind, oprcanmerge, oprcanhash, oprleft, oprright, oprresult, oprcom, oprnegate, oprcode::oid
   from pg_catalog.pg_operator`,
  `select oid, typname, typlen, typbyval, typtype, typcategory, typispreferred, typsubscript::oid, typelem, typarray,
     typinput::oid, typoutput::oid, typreceive::oid, typsend::oid, typbasetype, typcollation from pg_catalog.pg_type`,
  `select aggfnoid::oid, aggkind, aggtransfn::oid, aggfinalfn::oid, aggcombinefn::oid, aggserialfn::oid, aggdeserialfn::oid,
     aggmtransfn::oid, aggminvtransfn::oid, aggmfinalfn::oid, aggsortop, aggtranstype, aggmtranstype, agginitval, aggminitval
   from pg_catalog.pg_aggregate`,
  'select oid, amname, amhandler::oid, amtype from pg_catalog.pg_am',
  'select oid, collname, collprovider, collisdeterministic, collcollate, collctype, colllocale from pg_catalog.pg_collation',
  'select oid, relname, relkind, relrowsecurity, relforcerowsecurity from pg_catalog.pg_class',
]

/** The same by an OID that is not: it is left out. */
const numbered = [
  'select oid, castsource, casttarget, castfunc, castcontext, castmethod from pg_catalog.pg_cast',
  `select oid, amopfamily, amoplefttype, amoprighttype, amopstrategy, amoppurpose, amopopr, amopmethod, amopsortfamily
   from pg_catalog.pg_amop`,
  'select oid, amprocfamily, amproclefttype, amprocrighttype, amprocnum, amproc::oid from pg_catalog.pg_amproc',
  'select oid, opcmethod, opcname, opcfamily, opcintype, opcdefault, opckeytype from pg_catalog.pg_opclass',
]

/** The names in `pg_catalog`: a new object may have been given an OID in the range of the old ones. */
const names = [
  'select relnamespace, oid, relname, relkind from pg_catalog.pg_class',
  'select pronamespace, oid, proname, proargtypes from pg_catalog.pg_proc',
  'select oprnamespace, oid, oprname, oprleft, oprright from pg_catalog.pg_operator',
]

/**
 * A digest of PostgreSQL's own functions, types, casts and operators, and of what they call. The service resolves names to
 * these first, and a superuser can replace them or give a new object the OID of an old one.
 */
export async function digestOfBuiltins(snapshot: Reader): Promise<string> {
  const digest = createHash('sha256')
  const add = (rows: TextRow[]) => digest.update(JSON.stringify(rows.map(row => JSON.stringify(row)).sort()))
  for (const sql of assigned) add((await snapshot.rows(sql)).filter(([oid]) => isAssigned(oid!)))
  for (const sql of numbered)
    add((await snapshot.rows(sql)).filter(([oid]) => isBuiltin(oid!)).map(([, ...columns]) => columns))
  for (const sql of names)
    add(
      (await snapshot.rows(sql))
        .filter(([schema, oid]) => schema === pgCatalog && isBuiltin(oid!))
        .map(([, , ...columns]) => columns),
    )
  add(await readLanguages(snapshot))
  // A view that these checks read.
  add(await snapshot.rows(`select pg_catalog.pg_get_viewdef('pg_catalog.pg_roles'::regclass::oid)`))
  return digest.digest('hex')
}

/** The languages, with their handlers by name: those of PL/pgSQL have other OIDs on each server. */
async function readLanguages(snapshot: Reader): Promise<TextRow[]> {
  const functions = new Map<string | null, TextRow>()
  for (const [oid, ...columns] of await snapshot.rows('select oid, proname, prosrc, probin from pg_catalog.pg_proc'))
    functions.set(oid!, columns)
  const languages = await snapshot.rows(
    'select oid, lanname, lanpltrusted, lanplcallfoid, laninline, lanvalidator from pg_catalog.pg_language',
  )
  return languages
    .filter(([oid]) => isBuiltin(oid!))
    .map(([, name, isTrusted, ...handlers]) => [
      name!,
      isTrusted!,
      ...handlers.flatMap(handler => functions.get(handler) ?? []),
    ])
}
