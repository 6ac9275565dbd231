import { formatBalance } from '@workspace-wallet/contract'
import { bytesText, type Queryable, run, statement } from '../../database/statement.ts'
import { storedHoldColumns } from '../../database/tables/hold.ts'
import { byColumn } from '../../database/tables/table.ts'
import type { ChainedHolds } from '../decide/chain-decisions.ts'
import type { Written } from './write-transfers.ts'

const changeHoldsStatement = statement<Written>(
  'change-holds',
  `select date_trunc('milliseconds', clock_timestamp()) as now, pg_current_xact_id()::xid::text as version
   from change_holds($1::jsonb, $2::jsonb, $3::jsonb, $4::jsonb)`,
)

/**
 * Writes changes of holds with one call of the database function `change_holds`, the only way to write holds (see
 * database/migrations/initial/hold-changes.ts). The ledgers are locked.
 *
 * @throws DatabaseError restrict_violation when a change does not continue from the stored rows
 */
export async function changeHolds(db: Queryable, { ledgers, wallets, holds, events }: ChainedHolds): Promise<Written> {
  const [written] = await run(db, changeHoldsStatement, [
    json(
      ledgers.map(row => ({
        workspace_id: row.workspaceId,
        old_mac: bytesText(row.previousMac),
        at: row.lastPostedAt,
        position: row.position,
        journal_head: bytesText(row.journalHead),
        hold_count: row.holdCount,
        mac: bytesText(row.mac),
      })),
    ),
    json(
      wallets.map(row => ({
        workspace_id: row.workspaceId,
        id: row.id,
        old_mac: bytesText(row.previousMac),
        held: formatBalance(row.held, row.currency),
        held_until: row.heldUntil,
        hold_count: row.holdCount,
        mac: bytesText(row.mac),
      })),
    ),
    json(
      holds.map(({ previousMac, ...row }) => ({
        ...byColumn(storedHoldColumns, row),
        captured: formatBalance(row.captured, row.currency),
        remaining: formatBalance(row.remaining, row.currency),
        old_mac: previousMac && bytesText(previousMac),
        mac: bytesText(row.mac),
      })),
    ),
    json(
      events.map(event => ({
        workspace_id: event.workspaceId,
        position: event.position,
        id: event.id,
        type: event.type,
        hold_id: event.holdId,
        captured: event.captured,
        remaining: event.remaining,
        status: event.status,
        actor: event.actor,
        request_id: event.requestId,
        client_address: event.clientAddress,
        mac: bytesText(event.mac),
      })),
    ),
  ])
  return written!
}

function json(rows: object[]): string {
  return JSON.stringify(rows)
}
