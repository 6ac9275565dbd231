import type { ClientBase } from 'pg'
import { schemaOf } from './schema.ts'
import { type SettingChanges, settingsOf } from './session-settings.ts'

/** A session that core cannot use, however often it connects again. The message says what to change. */
export class UnsuitableSession extends Error {}

/**
 * Checks a new connection to PostgreSQL itself. It has its settings from the startup message.
 *
 * @param url the database URL of the connection
 * @throws UnsuitableSession if a connection pooler is in between, or has dropped the settings
 */
export async function requireOwnSession(client: ClientBase, url: string, changes?: SettingChanges): Promise<void> {
  const { pid, wrong } = await readSession(client, settingsOf(schemaOf(url), changes))
  if (pid !== pidOfStartup(client)) throw new UnsuitableSession(poolerOnDirectUrl)
  if (wrong === '') return
  throw new UnsuitableSession(
    `The session does not have the settings that core asked for (${wrong}): does a connection pooler drop the options of the startup message?`,
  )
}

/**
 * Checks a new connection to a connection pooler, which gives each transaction any of its sessions. It checks the settings of one of
 * them; the pooler has given all of them the same (see pooler.ts).
 *
 * @param serviceRole the role of DATABASE_URL
 * @throws UnsuitableSession
 */
export async function requirePooledSession(
  client: ClientBase,
  url: string,
  changes: SettingChanges,
  serviceRole: string,
): Promise<void> {
  // In a transaction, which a pooler that gives each statement another session rejects.
  await client.query('begin')
  const { role, wrong } = await readSession(client, settingsOf(schemaOf(url), changes))
  const { rows } = await client.query<{ isRenamed: boolean }>(ownNameStatement)
  await client.query('commit')
  if (!rows[0]!.isRenamed) throw new UnsuitableSession(namedStatementsLost)
  if (role === serviceRole)
    throw new UnsuitableSession(
      `The pooler connects to PostgreSQL with the role of DATABASE_URL, ${role}: give it a role of its own, a member of this one.`,
    )
  if (wrong === '') return
  throw new UnsuitableSession(
    `The sessions of the pooler do not have the settings of core (${wrong}): check connect_query in its [databases], run the migration step, and let PgBouncer RECONNECT.`,
  )
}

type SessionState = {
  pid: number
  /** Of the login. */
  role: string
  /** Settings with another value than expected, in words. Without those of the startup message: an operator chose them in the URL. */
  wrong: string
}

async function readSession(client: ClientBase, settings: Record<string, string>): Promise<SessionState> {
  const { rows } = await client.query<SessionState>(
    `select pg_backend_pid() as pid, session_user as role, array_to_string(array(
       select name || ' is "' || left(current_setting(name), 100) || '"'
       from pg_settings join unnest($1::text[], $2::text[]) as expected (name, value) using (name)
       where source <> 'client' and current_setting(name) <> value
         -- It shows the value of the system in place of 0.
         and not (source = 'session' and starts_with(name, 'tcp_keepalives_'))
       order by name), ', ') as wrong`,
    [Object.keys(settings), Object.values(settings)],
  )
  return rows[0]!
}

/** The process of the session according to the startup of the connection: a connection pooler sends a number of its own. */
function pidOfStartup(client: ClientBase): number {
  return (client as unknown as { processID: number }).processID
}

/**
 * Whether the pooler has given this statement a name of its own. One that knows no named statements would run those of core on
 * sessions that have not prepared them.
 */
const ownNameStatement = {
  name: 'check-name',
  text: `select not exists (select from pg_prepared_statements where name = 'check-name') as "isRenamed"`,
}

const poolerOnDirectUrl =
  'A connection pooler is between core and PostgreSQL, and core needs sessions of its own: give DATABASE_URL the address of PostgreSQL, and name PgBouncer in DATABASE_POOLER_URL.'
const namedStatementsLost =
  'The pooler in DATABASE_POOLER_URL does not keep named statements: core needs PgBouncer 1.21 or newer with pool_mode = transaction and max_prepared_statements above 0.'

/** Errors of PgBouncer, and of PostgreSQL behind it, about the way in which it is configured. */
const configurationErrors: [RegExp, string][] = [
  [/^unsupported startup parameter/, poolerOnDirectUrl],
  [/statement pooling mode/, 'The pooler in DATABASE_POOLER_URL has pool_mode = statement: core needs transaction.'],
  [/^no such database/, 'The pooler in DATABASE_POOLER_URL lacks a database of core in its [databases].'],
  // Of two connections that prepared it in the same session, or ran it in one that did not.
  [/^prepared statement "check-name"/, namedStatementsLost],
]

/** The same error, or an UnsuitableSession if it says that a pooler has an unsuitable configuration. */
export function explainConnectError(error: unknown): unknown {
  const { message } = error as { message?: unknown }
  const known = configurationErrors.find(([pattern]) => pattern.test(String(message)))
  return known ? new UnsuitableSession(`${known[1]} (${message})`, { cause: error }) : error
}
