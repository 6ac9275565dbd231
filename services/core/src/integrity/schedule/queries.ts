import type { Em } from '../../database/orm.ts'
import { runIn } from '../../database/run.ts'
import { statement } from '../../database/statement.ts'
import type { VerifiedEnd } from '../verify/baseline.ts'

const removeEndsStatement = statement('remove-verified-ledgers', 'delete from verified_ledger')

const insertEndsStatement = statement(
  'insert-verified-ledgers',
  'insert into verified_ledger select * from json_populate_recordset(null::verified_ledger, $1::json)',
)

/** Rows of one INSERT. */
const rowsPerInsert = 1_000

/** Replaces where the last sound verification ended. */
export async function replaceEnds(em: Em, ends: readonly VerifiedEnd[]): Promise<void> {
  const run = runIn(em)
  await run(removeEndsStatement, [])
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
