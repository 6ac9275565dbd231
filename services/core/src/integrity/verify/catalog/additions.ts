import type { TextRow } from '../../../database/snapshot.ts'
import { isBuiltin, pgCatalog } from './builtins.ts'
import type { Reader } from './reader.ts'

type Text = string | null

/** What decides whether an object can change the meaning of a statement: schemas, relations and types, by OID. */
class Surroundings {
  readonly #schemas: Map<Text, Text>
  readonly #relations: Map<Text, { schema: Text; kind: Text }>
  readonly #catalogs: Map<string, string>
  readonly #types: Map<Text, Text>
  readonly #arrays: Set<Text>
  readonly database: Text
  readonly #schema: string

  private constructor(
    schemas: TextRow[],
    relations: TextRow[],
    types: TextRow[],
    databases: TextRow[],
    schema: string,
  ) {
    this.#schema = schema
    this.#schemas = new Map(schemas.map(([oid, name]) => [oid!, name!]))
    this.#relations = new Map(relations.map(([oid, schema, kind]) => [oid!, { schema: schema!, kind: kind! }]))
    this.#catalogs = new Map(relations.filter(([oid]) => isBuiltin(oid!)).map(([oid, , , name]) => [name!, oid!]))
    this.#types = new Map(types.map(([oid, schema]) => [oid!, schema!]))
    this.#arrays = new Set(types.map(([, , array]) => array!))
    this.database = databases.find(([, name, current]) => name === current)?.[0] ?? null
  }

  static async read(snapshot: Reader): Promise<Surroundings> {
    return new Surroundings(
      await snapshot.rows('select oid, nspname from pg_catalog.pg_namespace'),
      await snapshot.rows('select oid, relnamespace, relkind, relname from pg_catalog.pg_class'),
      await snapshot.rows('select oid, typnamespace, typarray from pg_catalog.pg_type'),
      await snapshot.rows('select oid, datname, current_database() from pg_catalog.pg_database'),
      snapshot.schema,
    )
  }

  catalog = (name: string) => this.#catalogs.get(name)
  /** Whether a name without a schema can mean an object of this schema. */
  isSearched = (schema: Text) => schema === pgCatalog || this.#schemas.get(schema) === this.#schema
  isSearchedRelation = (oid: Text) => this.isSearched(this.#relations.get(oid)?.schema ?? null)
  /** Whether statements can have values of this type. */
  isUsedType = (oid: Text) => isBuiltin(oid) || this.isSearched(this.#types.get(oid) ?? null)
  /** Every relation has a type for its rows, as has each composite type, and every type has one for its arrays. */
  isImpliedType = (oid: Text, relation: Text) => this.#arrays.has(oid) || relation !== '0'
}

/** A catalog, the columns that decide, and whether such an object can change the meaning of a statement. */
type Kind = [catalog: string, columns: string, canMatter: (around: Surroundings, ...columns: Text[]) => boolean]

const inSearchedSchema: Kind[2] = (around, schema) => around.isSearched(schema!)
const inPgCatalog: Kind[2] = (_, schema) => schema === pgCatalog
const ofBuiltin: Kind[2] = (_, oid) => isBuiltin(oid!)
/** Access methods that decide which values are equal, and in which order. */
const comparing = ['403', '405']

const kinds: Kind[] = [
  // Those in the schema of the tables are compared with those that the migrations create, as are the rules and triggers of its tables,
  // and domains.
  ['pg_class', 'relnamespace', inPgCatalog],
  ['pg_proc', 'pronamespace', inPgCatalog],
  ['pg_rewrite', 'ev_class', ofBuiltin],
  ['pg_policy', 'polrelid', ofBuiltin],
  ['pg_trigger', 'tgrelid', ofBuiltin],
  ['pg_operator', 'oprnamespace', inSearchedSchema],
  ['pg_collation', 'collnamespace', inSearchedSchema],
  ['pg_conversion', 'connamespace', inSearchedSchema],
  ['pg_opfamily', 'opfnamespace', inSearchedSchema],
  ['pg_ts_config', 'cfgnamespace', inSearchedSchema],
  ['pg_ts_dict', 'dictnamespace', inSearchedSchema],
  ['pg_ts_parser', 'prsnamespace', inSearchedSchema],
  ['pg_ts_template', 'tmplnamespace', inSearchedSchema],
  [
    'pg_type',
    'typnamespace, oid, typrelid, typtype',
    (around, schema, oid, relation, type) =>
      around.isSearched(schema!) && !around.isImpliedType(oid!, relation!) && (type !== 'd' || schema === pgCatalog),
  ],
  ['pg_cast', 'castsource, casttarget', (around, from, to) => around.isUsedType(from!) && around.isUsedType(to!)],
  ['pg_transform', 'trftype, trflang', (around, type, language) => around.isUsedType(type!) && isBuiltin(language!)],
  ['pg_amop', 'amopfamily', ofBuiltin],
  ['pg_amproc', 'amprocfamily', ofBuiltin],
  [
    'pg_opclass',
    'opcnamespace, opcdefault, opcintype, opcmethod',
    (around, schema, isDefault, type, method) =>
      around.isSearched(schema!) || (isDefault === 't' && around.isUsedType(type!) && comparing.includes(method!)),
  ],
  [
    'pg_statistic_ext',
    'stxnamespace, stxrelid',
    (around, schema, relation) => around.isSearched(schema!) || around.isSearchedRelation(relation!),
  ],
  // It runs when somebody connects, or alters an object.
  ['pg_event_trigger', 'oid', () => true],
  // It writes rows without the service.
  ['pg_subscription', 'subdbid', (around, database) => database === around.database],
]

/**
 * The objects that can change the meaning of a statement, and that neither PostgreSQL nor a migration created, by what
 * PostgreSQL calls them. The value names the extension that an object belongs to.
 */
export async function readAdditions(snapshot: Reader): Promise<Record<string, string>> {
  const around = await Surroundings.read(snapshot)
  const found: Record<string, string> = {}
  for (const [catalog, columns, canMatter] of kinds)
    for (const [oid, ...decisive] of await snapshot.rows(`select oid, ${columns} from pg_catalog.${catalog}`)) {
      if (isBuiltin(oid!) || !canMatter(around, ...decisive)) continue
      const { name, extension } = await describeObject(snapshot, around.catalog(catalog)!, oid!)
      found[name] = extension === null ? '' : `it belongs to the extension ${extension}`
    }
  for (const [child, parent, nameOfChild, nameOfParent] of await snapshot.rows(
    'select inhrelid, inhparent, inhrelid::regclass, inhparent::regclass from pg_catalog.pg_inherits',
  ))
    if (around.isSearchedRelation(child!) || around.isSearchedRelation(parent!))
      found[`inheritance of ${nameOfChild}`] = `from ${nameOfParent}`
  return found
}

/** What PostgreSQL calls an object of a catalog, and the extension that it belongs to. */
async function describeObject(
  snapshot: Reader,
  catalog: string,
  oid: string,
): Promise<{ name: string; extension: Text }> {
  const [row] = await snapshot.rows(
    `select pg_catalog.pg_describe_object('${catalog}'::oid, '${oid}'::oid, 0), (
       select e.extname from pg_catalog.pg_depend d join pg_catalog.pg_extension e on e.oid = d.refobjid
       where d.classid = '${catalog}'::oid and d.objid = '${oid}'::oid and d.deptype = 'e' limit 1)`,
  )
  return { name: row![0] ?? `${catalog} ${oid}`, extension: row![1] ?? null }
}
