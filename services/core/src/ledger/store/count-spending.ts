import { formatBalance } from '@workspace-wallet/contract'
import { bytesText, type Queryable, run, statement } from '../../database/statement.ts'
import type { ChainedLimit } from '../decide/chain-decisions.ts'

const countSpendingStatement = statement('count-spending', 'select count_spending($1::jsonb)')

/**
 * Writes what transfers spend with one call of the database function `count_spending` (see
 * database/migrations/initial/limits.ts), in the transaction that posts them. The ledgers are locked.
 *
 * @throws DatabaseError restrict_violation when a sum does not continue from the stored row
 */
export async function countSpending(db: Queryable, limits: readonly ChainedLimit[]): Promise<void> {
  const rows = limits.map(limit => ({
    workspace_id: limit.workspaceId,
    subject: limit.subject,
    currency: limit.currency,
    old_mac: bytesText(limit.previousMac),
    day: limit.day,
    spent: formatBalance(limit.spent, limit.currency),
    mac: bytesText(limit.mac),
  }))
  await run(db, countSpendingStatement, [JSON.stringify(rows)])
}
