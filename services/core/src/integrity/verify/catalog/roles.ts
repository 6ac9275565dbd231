import type { DatabaseNote } from '@workspace-wallet/contract'
import type { Findings } from '../findings/findings.ts'
import { isBuiltin } from './builtins.ts'
import type { Reader } from './reader.ts'

/** The role that initialized the server, which is always a superuser. */
const firstSuperuser = '10'
/** PostgreSQL's roles whose members can write every table, or files of the server. */
const writingRoles = ['pg_write_all_data', 'pg_write_server_files', 'pg_execute_server_program']
/** PostgreSQL's roles whose members can read everything, lock tables or end sessions. */
const notedRoles = [
  'pg_read_all_data',
  'pg_read_server_files',
  'pg_maintain',
  'pg_signal_backend',
  'pg_create_subscription',
]
/** `lo_export(oid, text)`, which writes files of the server. */
const fileWriter = '765'

type Role = {
  oid: string
  name: string
  isService: boolean
  isPredefined: boolean
  rights: string[]
  reasons: string[]
}

/**
 * Reports the roles that can write to the database without the service and are not declared: somebody may have created one to
 * come back.
 *
 * @param declared the names of the roles that may; null for the first superuser and the owner of the tables
 * @returns for the operator to compare: the roles that do more than read what they were given, and if none is declared, those
 *   that can write
 */
export async function checkRoles(
  snapshot: Reader,
  declared: readonly string[] | null,
  findings: Findings,
): Promise<DatabaseNote[]> {
  const roles = await readRoles(snapshot)
  const owner = await addReasons(snapshot, roles)
  const notes: DatabaseNote[] = []
  for (const { oid, name, isService, isPredefined, reasons, rights } of roles.values()) {
    if (isService || isPredefined) continue
    const object = `role ${name}`
    const mayWrite = declared ? declared.includes(name) : oid === firstSuperuser || oid === owner
    if (reasons.length > 0 && !mayWrite) {
      const message = `it can write to the database without the service: ${reasons.join(', ')}`
      findings.add({ rule: 'database-role', message, ids: { object } })
    }
    const noted = [...(declared ? [] : reasons), ...rights]
    if (noted.length > 0) notes.push({ object, definition: noted.join(', ') })
  }
  return notes
}

async function readRoles(snapshot: Reader): Promise<Map<string | null, Role>> {
  const roles = new Map<string | null, Role>()
  for (const [oid, name, user, isSuperuser, createsRoles, replicates, bypassesRowSecurity] of await snapshot.rows(
    `select oid, rolname, session_user, rolsuper, rolcreaterole, rolreplication, rolbypassrls
     from pg_catalog.pg_roles order by rolname`,
  )) {
    const rights = [
      ...(createsRoles === 't' ? ['creates roles'] : []),
      ...(replicates === 't' ? ['replicates the server'] : []),
      ...(bypassesRowSecurity === 't' ? ['bypasses row security'] : []),
    ]
    roles.set(oid!, {
      oid: oid!,
      name: name!,
      isService: name === user,
      isPredefined: isBuiltin(oid!) && oid !== firstSuperuser,
      rights: isSuperuser === 't' ? [] : rights,
      reasons: isSuperuser === 't' ? ['superuser'] : [],
    })
  }
  return roles
}

/** Adds to each role why it can write. @returns the owner of the ledgers */
async function addReasons(snapshot: Reader, roles: Map<string | null, Role>): Promise<string | null> {
  const add = (oid: string | null, reason: string) => {
    const reasons = roles.get(oid)?.reasons
    if (reasons && !reasons.includes(reason) && !reasons.includes('superuser')) reasons.push(reason)
  }
  const schemas = await snapshot.rows('select oid, nspname, nspowner from pg_catalog.pg_namespace')
  const schema = schemas.find(([, name]) => name === snapshot.schema)
  add(schema?.[2] ?? null, `owns the schema ${snapshot.schema}`)
  const relations = await snapshot.rows('select relnamespace, relowner, relname from pg_catalog.pg_class')
  const ours = relations.filter(([namespace]) => namespace === schema?.[0])
  for (const [, owner] of ours) add(owner!, 'owns tables')
  for (const [name, owner, current] of await snapshot.rows(
    'select datname, datdba, current_database() from pg_catalog.pg_database',
  ))
    if (name === current) add(owner!, 'owns the database')
  for (const [setting, grantee, privilege] of await snapshot.rows(
    `select p.parname, x.grantee, x.privilege_type from pg_catalog.pg_parameter_acl p, pg_catalog.aclexplode(p.paracl) x`,
  ))
    if (privilege === 'ALTER SYSTEM') add(grantee!, `may change the setting ${setting} of the server`)
  for (const [oid, name, grantee] of await snapshot.rows(
    `select p.oid, p.proname, x.grantee from pg_catalog.pg_proc p, pg_catalog.aclexplode(p.proacl) x`,
  ))
    if (oid === fileWriter) add(grantee!, `may call ${name}`)
  addMembers(roles, await snapshot.rows('select roleid, member from pg_catalog.pg_auth_members'), add)
  return ours.find(([, , name]) => name === 'ledger')?.[1] ?? null
}

/** A member has the rights of its role, or can take them. So has a member of that member. */
function addMembers(
  roles: Map<string | null, Role>,
  memberships: (string | null)[][],
  add: (oid: string | null, reason: string) => void,
): void {
  const canWrite = ({ name, isService, isPredefined, reasons }: Role) =>
    isPredefined ? writingRoles.includes(name) : isService || reasons.length > 0
  const count = () => [...roles.values()].reduce((sum, { reasons }) => sum + reasons.length, 0)
  for (let before = -1; before < count(); ) {
    before = count()
    for (const [granted, member] of memberships) {
      const role = roles.get(granted!)
      if (role && canWrite(role)) add(member!, `member of ${role.name}`)
    }
  }
  for (const [granted, member] of memberships) {
    const role = roles.get(granted!)
    if (role?.isPredefined && notedRoles.includes(role.name)) roles.get(member!)?.rights.push(`member of ${role.name}`)
  }
}
