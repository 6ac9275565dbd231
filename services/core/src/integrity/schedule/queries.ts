import type { Pool } from 'pg'
import type { Em } from '../../database/orm.ts'
import { runIn } from '../../database/run.ts'
import { run, statement } from '../../database/statement.ts'
import type { VerifiedEnd } from '../verify/baseline.ts'

/** Whoever has the role of the service may add rows as fast as they are removed. */
const defaultRemovingMs = 60_000

/** Rows of one DELETE. */
const rowsPerDelete = 50_000

const removeEndsStatement = statement<{ removed: number }>(
  'remove-verified-ledgers',
  `with removed as (
     delete from verified_ledger where ctid = any(array(select ctid from verified_ledger limit ${rowsPerDelete})) returning 1)
   select count(*)::int as removed from removed`,
)

const insertEndsStatement = statement(
  'insert-verified-ledgers',
  'insert into verified_ledger select * from json_populate_recordset(null::verified_ledger, $1::json)',
)

/** Rows of one INSERT. */
const rowsPerInsert = 1_000

/**
 * Removes where the last sound verification ended, in several transactions: whoever has the role of the service can add more rows than
 * one statement removes in time. If nothing is written afterwards, the next verification is a whole one.
 *
 * @throws Error if there are still rows after `removingMs`, or when the signal is aborted
 */
export async function removeEnds(reads: Pool, signal: AbortSignal, removingMs = defaultRemovingMs): Promise<void> {
  const untilMs = performance.now() + removingMs
  for (;;) {
    signal.throwIfAborted()
    const [found] = await run(reads, removeEndsStatement, [])
    // After the last rows too: a core that stops, or has lost the lock, must not write ends.
    signal.throwIfAborted()
    if (found!.removed < rowsPerDelete) return
    if (performance.now() >= untilMs)
      throw new Error('somebody adds rows to verified_ledger as fast as core removes them')
  }
}

// Keeps others from adding rows until the transaction ends. Its right to delete rows allows it to the service.
const lockEndsStatement = statement('lock-verified-ledgers', 'lock table verified_ledger in share row exclusive mode')

/** Writes where a sound verification ended, and removes what was added since `removeEnds`. */
export async function writeEnds(em: Em, ends: readonly VerifiedEnd[]): Promise<void> {
  const run = runIn(em)
  await run(lockEndsStatement, [])
  let removed: number
  do removed = (await run(removeEndsStatement, []))[0]!.removed
  while (removed === rowsPerDelete)
  for (let at = 0; at < ends.length; at += rowsPerInsert)
    await run(insertEndsStatement, [JSON.stringify(ends.slice(at, at + rowsPerInsert).map(toRow))])
}

function toRow({
  workspaceId,
  position,
  orderCount,
  postedAt,
  journalHead,
  auditPosition,
  auditMac,
  wallets,
  audit,
}: VerifiedEnd): Record<string, string | null> {
  return {
    workspace_id: workspaceId,
    position,
    order_count: orderCount,
    posted_at: postedAt,
    journal_head: `\\x${journalHead}`,
    audit_position: auditPosition,
    audit_mac: `\\x${auditMac}`,
    wallets: `\\x${wallets}`,
    audit: `\\x${audit}`,
  }
}
