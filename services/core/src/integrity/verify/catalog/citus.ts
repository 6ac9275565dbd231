import { createHash } from 'node:crypto'
import type { Reader } from './reader.ts'

/**
 * A digest of the functions of Citus, with what everybody may do with them, and of the names of its other objects, by the version of the
 * extension. All installations of a version have the same.
 */
const knownVersions: Record<string, string> = {
  '14.0-1': 'df786613839fdf420cff2c73cea7b7d5f9aaa1b9eb268cfece16da2da341e976',
}

const extensions = ['citus', 'citus_columnar']
const ofCitus = extensions.map(name => `it belongs to the extension ${name}`)

export const nameOfCitus = 'extension citus'

/** Replaces the objects of Citus among additions by one, which has the digest of all of them. Without Citus, nothing changes. */
export async function summarizeCitus(
  snapshot: Reader,
  additions: Record<string, string>,
): Promise<Record<string, string>> {
  const isMember = (object: string) => ofCitus.includes(additions[object] ?? '')
  if (!Object.keys(additions).some(isMember)) return additions
  const members = await readMembers(snapshot)
  const compositeTypes = await readCompositeTypes(snapshot, members)
  // The relation of a composite type, and the index of a table, are no members of the extension.
  const isOfCitus = (object: string) =>
    isMember(object) || compositeTypes.has(object) || /^index (pg_dist|placement)_/.test(object)
  const objects = Object.keys(additions).filter(isOfCitus)
  const others = Object.fromEntries(Object.entries(additions).filter(([object]) => !isOfCitus(object)))
  const digest = createHash('sha256')
    .update(JSON.stringify([objects.sort(), await readFunctions(snapshot, members)]))
    .digest('hex')
  return { ...others, [nameOfCitus]: digest }
}

/** The digest that is expected of the installed version; null without Citus, and empty for a version that is not known. */
export async function expectedCitus(snapshot: Reader): Promise<string | null> {
  const versions = await snapshot.rows('select extname, extversion from pg_catalog.pg_extension')
  const version = versions.find(([name]) => name === 'citus')?.[1]
  return version === undefined ? null : (knownVersions[version!] ?? '')
}

/** OIDs. */
type Members = Set<string | null>

/** The objects of Citus; none without it. */
async function readMembers(snapshot: Reader): Promise<Members> {
  const installed = await snapshot.rows('select oid, extname from pg_catalog.pg_extension')
  const oids = installed.filter(([, name]) => extensions.includes(name!)).map(([oid]) => oid)
  const members: Members = new Set()
  if (oids.length === 0) return members
  for (const [extension, oid, kind] of await snapshot.rows('select refobjid, objid, deptype from pg_catalog.pg_depend'))
    if (kind === 'e' && oids.includes(extension!)) members.add(oid!)
  return members
}

/** The composite types of Citus, as additions name them. */
async function readCompositeTypes(snapshot: Reader, members: Members): Promise<Set<string>> {
  const types = await snapshot.rows('select oid, oid::regtype from pg_catalog.pg_type')
  return new Set(types.filter(([oid]) => members.has(oid!)).map(([, name]) => `composite type ${name}`))
}

async function readFunctions(snapshot: Reader, members: Members): Promise<string[]> {
  const functions = await snapshot.rows(
    `select oid, proname, proargtypes, prolang, prosrc, probin, prosecdef, provolatile, proconfig,
       (select pg_catalog.string_agg(x.privilege_type, ',') from pg_catalog.aclexplode(proacl) x where x.grantee = 0::oid), proacl is null
     from pg_catalog.pg_proc`,
  )
  return (
    functions
      .filter(([oid]) => members.has(oid!))
      // Types of Citus itself, and PL/pgSQL, have other OIDs in each database.
      .map(([, name, types, language, ...rest]) =>
        JSON.stringify([name, types!.split(' ').filter(isAssigned), isAssigned(language!) && language, ...rest]),
      )
      .sort()
  )
}

const isAssigned = (oid: string) => Number(oid) < 10_000

/** The suffixes of the shards of the tables, such as `_102018`; none if the schema is not distributed. */
export async function readShardSuffixes(snapshot: Reader): Promise<string[]> {
  const [relation] = await snapshot.rows(
    `select c.oid from pg_catalog.pg_class c join pg_catalog.pg_namespace n on n.oid = c.relnamespace
     where c.relname = 'pg_dist_shard'::name and n.nspname = 'pg_catalog'::name`,
  )
  if (!relation) return []
  const shards = await snapshot.rows(
    `select s.shardid from pg_catalog.pg_dist_shard s join pg_catalog.pg_class c on c.oid = s.logicalrelid::oid
     where c.relnamespace = '{schema}'::regnamespace::oid`,
  )
  return shards.map(([id]) => `_${id}`)
}

/** The functions of Citus, as grants name them. The digest says what everybody may do with them. */
export async function readCitusFunctions(snapshot: Reader): Promise<Set<string>> {
  const members = await readMembers(snapshot)
  if (members.size === 0) return members as Set<never>
  const functions = await snapshot.rows('select oid, oid::regprocedure from pg_catalog.pg_proc')
  return new Set(functions.filter(([oid]) => members.has(oid!)).map(([, name]) => name!))
}

type Definitions = Record<string, string>

/** Separates the definitions of shards, under the names of their tables, from those of the tables that Citus shows in their place. */
export function separateShards(
  found: Definitions,
  suffixes: readonly string[],
): { tables: Definitions; shards: Definitions } {
  const withoutSuffix = (text: string) => suffixes.reduce((rest, suffix) => rest.replaceAll(suffix, ''), text)
  const tables: Definitions = {}
  const shards: Definitions = {}
  for (const [object, definition] of Object.entries(found)) {
    const name = withoutSuffix(object)
    if (name === object) tables[object] = definition.replace('default worker_nextval(', 'default nextval(')
    else if (name in shards) shards[object] = 'a second shard'
    else shards[name] = withoutSuffix(definition)
  }
  // A move also creates the triggers on TRUNCATE for shards.
  for (const [object, definition] of Object.entries(shards))
    if (isOnlyOfTable(object, definition) && definition === tables[object]) delete shards[object]
  return { tables, shards }
}

const isOfTable =
  /^(relation|column|constraint|enforcement of|index|trigger|policy) | on (?!function |schema |parameter )/
const isOnlyOfTable = (object: string, definition: string) =>
  /^(sequence|view|of the kind c),/.test(definition) ||
  /^\w+ on \S+\.flow$/.test(object) ||
  definition.includes(' TRUNCATE ON ')

/** What the shards of these tables are. Citus keeps triggers on TRUNCATE, sequences and views with the tables; types have no shards. */
export function expectedOfShards(expected: Definitions): Definitions {
  const isOfType = (object: string) => {
    const [, type] = /^column (.+)\.[^.]+$/.exec(object) ?? []
    return type !== undefined && expected[`relation ${type}`]?.startsWith('of the kind c,')
  }
  return Object.fromEntries(
    Object.entries(expected)
      .filter(
        ([object, definition]) => isOfTable.test(object) && !isOnlyOfTable(object, definition) && !isOfType(object),
      )
      .map(([object, definition]) => [object, definition.replace(/, (identity a|default nextval\(.*\))$/, '')]),
  )
}
