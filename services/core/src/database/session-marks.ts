import { createHmac, type KeyObject } from 'node:crypto'
import type { ClientBase } from 'pg'

/**
 * Marks the sessions of cores, so that a core recognizes those of other cores. Whoever has the password of the service's role can
 * give a session any name, but not this mark: it is a MAC over what PostgreSQL says of the session.
 *
 * The mark is the key of a shared advisory lock, which the session holds until it ends and which `pg_locks` shows to everybody.
 */
export type MarkedSession = {
  pid: number
  /** The start of the session to the microsecond, as text: a later session may have the same pid. */
  startedAt: string
}

/** @throws when the session has ended */
export async function markSession(client: ClientBase, chainKey: KeyObject): Promise<void> {
  const { rows } = await client.query<MarkedSession>(
    'select pid, backend_start::text as "startedAt" from pg_stat_activity where pid = pg_backend_pid()',
  )
  // Without waiting: nobody else can know the key of this lock before.
  await client.query('select pg_try_advisory_lock_shared($1)', [markOf(chainKey, rows[0]!)])
}

/** A signed integer of 64 bits, in decimal digits. */
export function markOf(chainKey: KeyObject, { pid, startedAt }: MarkedSession): string {
  // The content begins with a word, like that of signed rows (see tables/table.ts).
  const mac = createHmac('sha256', chainKey)
    .update(JSON.stringify(['session', pid, startedAt]))
    .digest()
  return mac.readBigInt64BE().toString()
}
