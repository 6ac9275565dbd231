import pg, { type Pool, type PoolClient } from 'pg'
import { runTransaction } from '../../database/one-place.ts'
import { type LedgerRequest, requestIdOf } from '../decide/requests.ts'

/** The connection was lost after COMMIT was sent and before its result arrived: the outcome is unknown. */
export class CommitUnknown extends Error {}

/** Runs a transaction. After an error from PostgreSQL it is rolled back; after any other error the connection is closed. */
export async function withConnection<Result>(
  pool: Pool,
  transaction: (client: PoolClient) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect()
  let lost: Error | undefined
  try {
    return await runTransaction(pool, () => transaction(client))
  } catch (error) {
    if (isServerError(error)) await client.query('rollback').catch(failure => (lost = failure))
    else lost = error as Error
    throw error
  } finally {
    // The state of a lost connection is unknown; closing it rolls the transaction back.
    client.release(lost)
  }
}

/**
 * Waits for writes and for the COMMIT that was sent with them.
 *
 * @throws CommitUnknown when the connection was lost, unless there was nothing to commit
 */
export async function committed(writes: Promise<unknown>[], commit: Promise<unknown>): Promise<void> {
  const outcomes = await Promise.allSettled([...writes, commit])
  const failures = outcomes.flatMap(outcome => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []))
  if (failures.length === 0) return
  // After an error from PostgreSQL, COMMIT is known to have rolled back. A lost connection says nothing.
  const refused = failures.find(isServerError)
  if (refused !== undefined) throw refused
  if (writes.length === 0) throw failures[0]
  throw new CommitUnknown('the connection was lost before the result of COMMIT arrived', { cause: failures[0] })
}

/** Whether this is an error that PostgreSQL returned and after which the session continues. */
function isServerError(error: unknown): boolean {
  return (error as { severity?: unknown }).severity === 'ERROR'
}

/**
 * The name of a batch: the ID of its first request and the number of other requests. The core log has it, and it is the
 * session's application_name during the transaction, so that pg_stat_activity and PostgreSQL's log identify the batch.
 * An SQL comment would not work: it would change the text of prepared statements.
 */
export function batchName(requests: readonly LedgerRequest[]): string {
  const name = `core ${requestIdOf(requests[0]!)}`.replaceAll(/[^ -~]/g, '?')
  const more = requests.length > 1 ? `+${requests.length - 1}` : ''
  // PostgreSQL truncates application_name to 63 bytes.
  return name.slice(0, 63 - more.length) + more
}

/** The SQL that begins the transaction of a batch. The setting is in the same message, so it costs no round trip. */
export function beginFor(name: string): string {
  return `begin; set local application_name = ${pg.escapeLiteral(name)}`
}
