import type { Log } from '@workspace-wallet/runtime'
import pg from 'pg'
import type { Posting, PostingResult } from './posting.ts'

/**
 * A batch is named for the first request in it and how many came along, in the log and in PostgreSQL. There it is the
 * session's application_name for as long as the transaction lasts, so that pg_stat_activity and PostgreSQL's own log say
 * whose it is. A comment would change the text of statements that are prepared once and used for every request.
 */
function nameOf(postings: readonly Posting[]): string {
  const name = `core ${postings[0]!.requestId}`.replaceAll(/[^ -~]/g, '?')
  const more = postings.length > 1 ? `+${postings.length - 1}` : ''
  // PostgreSQL keeps 63 bytes.
  return name.slice(0, 63 - more.length) + more
}

/**
 * Begins the transaction of a batch, in one message, because settings cost next to nothing there.
 *
 * Everything in it finds its rows by an index, the checks of foreign keys included. Statistics from when a table was
 * small would have them planned as scans, and kept so while it grows: ten times the cost until the next analyze.
 *
 * No statement of a batch takes seconds. PostgreSQL's word that it ended one, and that nothing was done, comes before
 * the connection is given up (see core.ts), which would leave that open.
 */
export function beginFor(postings: readonly Posting[]): string {
  const name = pg.escapeLiteral(nameOf(postings))
  return `begin; set local enable_seqscan = off; set local statement_timeout = 3000; set local application_name = ${name}`
}

type Post = (postings: Posting[]) => Promise<PostingResult[]>

/** Writes a line for each batch: the name that PostgreSQL saw, and all requests that were in it. */
export function withBatchLog(log: Log, post: Post): Post {
  return async postings => {
    const startedAt = performance.now()
    const results = await post(postings)
    if (log.isLevelEnabled('info')) {
      const milliseconds = Math.round((performance.now() - startedAt) * 100) / 100
      const refused = results.filter(({ kind }) => kind === 'refused').length
      const requestIds = postings.map(({ requestId }) => requestId)
      log.info({ batch: nameOf(postings), requestIds, refused, milliseconds }, 'a batch was posted')
    }
    return results
  }
}
