import { type Log, pause } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { RepeatedCheck } from './repeated-check.ts'
import { run, statement } from './statement.ts'

const intervalMs = 1_000
/** As stored. PostgreSQL compresses them, to a 250th at best. */
const hugeBytes = 8_192

/** It does not read the settings themselves, which may be larger than the memory. */
const findHugeStatement = statement<{ reset: string; bytes: number }>(
  'find-huge-settings',
  `select pg_column_size(setconfig) as bytes,
     case setdatabase when 0 then 'alter role session_user reset all'
       else format('alter role session_user in database %I reset all', current_database()) end as reset
   from pg_db_role_setting
   where setrole = session_user::regrole
     and setdatabase in (0, (select oid from pg_database where datname = current_database()))
     and pg_column_size(setconfig) > ${hugeBytes}`,
)

/**
 * Resets the settings of the service's role, once a second until `stopping`, if they are huge. Sessions of core override their values, but
 * PostgreSQL reads all of them before a session begins: with values of many megabytes, which whoever has the password of the role may set,
 * that takes longer than core waits for a connection. Short settings have no effect, and remain for `ledger verify` to report.
 *
 * @param pool sessions of the service's role itself, not of a pooler
 */
export async function watchRoleSettings(pool: Pool, log: Log, stopping: AbortSignal): Promise<void> {
  const check = new RepeatedCheck(log, "settings of the service's role")
  while (!stopping.aborted) {
    await resetHugeSettings(pool, log).then(
      () => check.succeeded(),
      error => check.failed(error),
    )
    await pause(intervalMs, stopping)
  }
}

export async function resetHugeSettings(pool: Pool, log: Log): Promise<void> {
  for (const { reset, bytes } of await run(pool, findHugeStatement, [])) {
    // PostgreSQL resets the settings of a language only in a session that has used it.
    await pool.query(`do $$ begin end $$; ${reset}`)
    log.error(
      { bytes },
      "huge settings of the service's role delayed all new sessions, and were reset: change the password of the role",
    )
  }
}
