import type { DatabaseNote } from '@workspace-wallet/contract'
import type { Reader } from './reader.ts'

/** What operators may add to a database, and an attacker too: the verification cannot judge it. [kind, SQL: name and definition] */
const noted: [kind: string, sql: string][] = [
  [
    'extension',
    `select e.extname, concat_ws(' ', e.extversion, 'in the schema', n.nspname)
     from pg_catalog.pg_extension e join pg_catalog.pg_namespace n on n.oid = e.extnamespace where e.extname <> 'plpgsql'`,
  ],
  // A library in a session of the service can change anything.
  [
    'module',
    `select m.module_name, concat_ws(' ', m.version, m.file_name)
     from pg_catalog.pg_get_loaded_modules() m where m.module_name is distinct from 'plpgsql'`,
  ],
  [
    'publication',
    `select p.pubname, case when p.puballtables then 'of all tables' end from pg_catalog.pg_publication p`,
  ],
  ['replication slot', `select s.slot_name, s.slot_type from pg_catalog.pg_replication_slots s where not s.temporary`],
  [
    'foreign server',
    `select s.srvname, f.fdwname
     from pg_catalog.pg_foreign_server s join pg_catalog.pg_foreign_data_wrapper f on f.oid = s.srvfdw`,
  ],
  ['language', `select l.lanname, null from pg_catalog.pg_language l where l.oid >= 16384::oid`],
  ['access method', `select a.amname, null from pg_catalog.pg_am a where a.oid >= 16384::oid`],
  ['security labels', `select distinct l.provider, null from pg_catalog.pg_seclabel l`],
]

export async function readNotes(snapshot: Reader): Promise<DatabaseNote[]> {
  const notes: DatabaseNote[] = []
  for (const [kind, sql] of noted)
    for (const [name, definition] of await snapshot.rows(`${sql} order by 1`))
      notes.push({ object: `${kind} ${name}`, definition: definition ?? '' })
  return notes
}
