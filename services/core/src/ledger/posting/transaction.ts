import type { Pool, PoolClient } from 'pg'

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
    return await transaction(client)
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
