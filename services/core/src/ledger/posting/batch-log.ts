import type { Log } from '@workspace-wallet/runtime'
import pg from 'pg'
import { type LedgerRequest, type RequestResult, requestIdOf } from './requests.ts'

/**
 * The name of a batch: the ID of its first request and the number of other requests. The core log has it, and it is the
 * session's application_name during the transaction, so that pg_stat_activity and PostgreSQL's log identify the batch.
 * An SQL comment would not work: it would change the text of prepared statements.
 */
function batchName(requests: readonly LedgerRequest[]): string {
  const name = `core ${requestIdOf(requests[0]!)}`.replaceAll(/[^ -~]/g, '?')
  const more = requests.length > 1 ? `+${requests.length - 1}` : ''
  // PostgreSQL truncates application_name to 63 bytes.
  return name.slice(0, 63 - more.length) + more
}

/**
 * The SQL that begins the transaction of a batch. The settings are in the same message, so they cost no round trip.
 *
 * The statement timeout is shorter than the query timeout of the connection pool (see compose.ts), so that PostgreSQL
 * reports a canceled statement, and thus that nothing was written, before core closes the connection.
 */
export function beginFor(requests: readonly LedgerRequest[]): string {
  const name = pg.escapeLiteral(batchName(requests))
  return `begin; set local statement_timeout = 3000; set local application_name = ${name}`
}

type Post = (requests: LedgerRequest[]) => Promise<RequestResult[]>

/** Logs each batch with its name in PostgreSQL, the IDs of its requests, the number of rejected requests and its duration. */
export function withBatchLog(log: Log, post: Post): Post {
  return async requests => {
    const startedAt = performance.now()
    const results = await post(requests)
    if (log.isLevelEnabled('info')) {
      const milliseconds = Math.round((performance.now() - startedAt) * 100) / 100
      const rejected = results.filter(({ kind }) => kind === 'refused').length
      const requestIds = requests.map(requestIdOf)
      log.info({ batch: batchName(requests), requestIds, rejected, milliseconds }, 'a batch was posted')
    }
    return results
  }
}
