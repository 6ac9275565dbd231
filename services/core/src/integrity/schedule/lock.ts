import { setInterval } from 'node:timers/promises'
import type pg from 'pg'
import { isLockTimeout } from '../../database/errors.ts'
import { requireOwnSession } from '../../database/session-checks.ts'
import { markSession } from '../../database/session-marks.ts'
import { type SnapshotSource, snapshotClient, snapshotSettings } from '../../database/snapshot.ts'

/** The key of the advisory lock. One of two integers is never the mark of a session (see session-marks.ts). */
const lockKey = '1447381577, 1'
/** Shorter than `idle_in_transaction_session_timeout`, which frees the lock if core is frozen or cannot reach PostgreSQL. */
const keepAliveMs = 10_000

/**
 * Runs an action under a lock that one core has at a time. A transaction holds the lock: it is free again as soon as the connection is
 * lost, whatever happens to core, so no lock is ever stale.
 *
 * It waits for the lock for a moment, so that somebody else who holds it is found and ended (see foreign-sessions.ts).
 *
 * @param action gets a signal that is aborted when the lock is lost
 * @returns false if another core has the lock
 */
export async function withVerificationLock(
  source: SnapshotSource,
  stopping: AbortSignal,
  action: (signal: AbortSignal) => Promise<void>,
): Promise<boolean> {
  const client = snapshotClient(source.databaseUrl, 'core verification lock')
  const lost = new AbortController()
  client.once('end', () => lost.abort(new Error('the connection that holds the lock of verifications was lost')))
  try {
    await client.connect()
    await requireOwnSession(client, source.databaseUrl, snapshotSettings)
    await markSession(client, source.chainKey)
    // With the default isolation, it keeps no rows that were replaced.
    await client.query('begin')
    if (!(await takeLock(client))) return false
    const ended = new AbortController()
    const keeping = keepAlive(client, AbortSignal.any([ended.signal, lost.signal]))
    try {
      await action(AbortSignal.any([stopping, lost.signal]))
    } finally {
      ended.abort()
      await keeping
    }
    return true
  } finally {
    await client.end()
  }
}

async function takeLock(client: pg.Client): Promise<boolean> {
  try {
    await client.query(`select pg_advisory_xact_lock(${lockKey})`)
    return true
  } catch (error) {
    if (isLockTimeout(error)) return false
    throw error
  }
}

async function keepAlive(client: pg.Client, until: AbortSignal): Promise<void> {
  try {
    for await (const _ of setInterval(keepAliveMs, undefined, { signal: until, ref: false }))
      await client.query('select 1')
  } catch {
    // It has ended, or the connection is lost, which the listener for its end notices.
  }
}
