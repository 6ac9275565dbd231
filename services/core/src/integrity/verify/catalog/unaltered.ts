import { createHash } from 'node:crypto'
import type { Findings } from '../findings/findings.ts'
import { pgCatalog } from './builtins.ts'
import type { Reader } from './reader.ts'

/** Catalogs that say what a name means and what a statement reads. The columns: schema or null, OID, version, kind or null. */
const versions = [
  'select oid, oid, xmin, null from pg_catalog.pg_namespace',
  'select relnamespace, oid, xmin, relkind from pg_catalog.pg_class',
  'select pronamespace, oid, xmin, null from pg_catalog.pg_proc',
  'select oprnamespace, oid, xmin, null from pg_catalog.pg_operator',
  'select typnamespace, oid, xmin, null from pg_catalog.pg_type',
  'select null, oid, xmin, null from pg_catalog.pg_cast',
  'select null, oid, xmin, null from pg_catalog.pg_language',
  'select null, oid, xmin, null from pg_catalog.pg_event_trigger',
  'select null, aggfnoid::oid, xmin, null from pg_catalog.pg_aggregate',
  'select null, oid, xmin, null from pg_catalog.pg_amop',
  'select null, oid, xmin, null from pg_catalog.pg_amproc',
  'select null, oid, xmin, null from pg_catalog.pg_opclass',
]

/** Indexes and TOAST tables, which may be rebuilt at any time. */
const rebuilt = ['i', 'I', 't']

/**
 * A digest of the version of each definition. A statement reads rows as of the snapshot, but resolves table names when it
 * runs: renaming tables in between shows it other rows. So the digest must be the same after the verification.
 */
export async function readCatalogVersion(snapshot: Reader): Promise<string> {
  const digest = createHash('sha256')
  const schemas = await snapshot.rows('select oid, nspname from pg_catalog.pg_namespace')
  const searched = [null, pgCatalog, ...schemas.filter(([, name]) => name === snapshot.schema).map(([oid]) => oid)]
  const relations = new Set<string | null>()
  for (const sql of versions) {
    const rows = (await snapshot.rows(sql)).filter(
      ([schema, , , kind]) => searched.includes(schema!) && !rebuilt.includes(kind!),
    )
    if (sql === versions[1]) for (const [, oid] of rows) relations.add(oid!)
    digest.update(JSON.stringify(rows.map(row => row.join(' ')).sort()))
  }
  const rules = await snapshot.rows('select ev_class, oid, xmin from pg_catalog.pg_rewrite')
  digest.update(
    JSON.stringify(
      rules
        .filter(([relation]) => relations.has(relation!))
        .map(row => row.join(' '))
        .sort(),
    ),
  )
  return digest.digest('hex')
}

/** @param before the result of `readCatalogVersion` in the snapshot that was verified */
export async function checkUnaltered(before: string, now: Reader, findings: Findings): Promise<void> {
  if ((await readCatalogVersion(now)) === before) return
  const message =
    'it was altered during the verification, which may have read other tables: run ledger verify again. If it is reported each time, also without migrations, change the password of the service role: its holder can cause it by granting itself rights that it has'
  findings.add({ rule: 'database-object', message, ids: { object: `schema ${now.schema}` } })
}
