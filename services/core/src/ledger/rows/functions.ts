import type { KeyObject } from 'node:crypto'
import type { Run } from '../../database/run.ts'
import { type LedgerRow, ledgerMac, type WalletRow, walletMac } from '../../database/signed-rows.ts'
import { statement } from '../../database/statement.ts'

/**
 * Database functions write the rows of ledgers and wallets and check each change (see
 * database/migrations/initial/ledger-rows.ts; for postings, posting/post.ts). Callers lock the ledger first and pass rows
 * whose MACs they have checked. IDs are UUIDs. Functions that return rows return the new ones.
 *
 * All throw a DatabaseError, restrict_violation, when a change does not continue from the stored rows.
 */
type Changed = { ledger: LedgerRow; wallet: WalletRow }

const openLedgerStatement = statement('open-ledger', 'select open_ledger($1, $2, $3)')

/** Inserts the empty ledger of a new workspace. */
export async function openLedger(run: Run, chainKey: KeyObject, workspaceId: string, now: Date): Promise<void> {
  const ledger = {
    workspaceId,
    status: 'OPEN',
    walletCount: 0,
    orderCount: 0,
    lastPostedAt: now,
    haltReason: null,
    revision: 1,
  }
  await run(openLedgerStatement, [workspaceId, now, ledgerMac(chainKey, ledger)])
}

const createWalletStatement = statement('create-wallet', 'select create_wallet($1, $2, $3, $4, $5, $6, $7, $8, $9)')

/** Inserts an empty wallet. A number, if it has one, must be the next one of the ledger. */
export async function insertWallet(
  run: Run,
  chainKey: KeyObject,
  before: LedgerRow,
  wallet: WalletRow,
): Promise<Changed> {
  const { workspaceId, id, number, kind, name, currency, createdAt } = wallet
  const walletCount = number ?? before.walletCount
  const ledger = { ...before, walletCount, lastPostedAt: createdAt, revision: before.revision + 1 }
  const macs = [walletMac(chainKey, wallet), ledgerMac(chainKey, ledger)]
  await run(createWalletStatement, [workspaceId, id, number, kind, name, currency, createdAt, ...macs])
  return { ledger, wallet }
}

const changeWalletStatusStatement = statement(
  'change-wallet-status',
  'select change_wallet_status($1, $2, $3, $4, $5, $6)',
)

/** Freezes, unfreezes or closes a wallet. */
export async function changeWalletStatus(
  run: Run,
  chainKey: KeyObject,
  before: Changed,
  status: string,
  at: Date,
): Promise<Changed> {
  const ledger = { ...before.ledger, lastPostedAt: at, revision: before.ledger.revision + 1 }
  const wallet = { ...before.wallet, status, updatedAt: at, revision: before.wallet.revision + 1 }
  const macs = [walletMac(chainKey, wallet), ledgerMac(chainKey, ledger)]
  await run(changeWalletStatusStatement, [wallet.workspaceId, wallet.id, status, at, ...macs])
  return { ledger, wallet }
}

const changeLedgerStatusStatement = statement('change-ledger-status', 'select change_ledger_status($1, $2, $3, $4)')

/**
 * Halts, reopens or closes a ledger.
 *
 * @param sign whether to compute a new MAC. Without it the row keeps its MAC, so a row that was modified outside the
 *   service stays detectable.
 */
export async function changeLedgerStatus(
  run: Run,
  chainKey: KeyObject,
  before: LedgerRow & { mac: Uint8Array },
  { status, haltReason }: Pick<LedgerRow, 'status' | 'haltReason'>,
  sign: boolean,
): Promise<void> {
  const ledger = { ...before, status, haltReason, revision: before.revision + 1 }
  const mac = sign ? ledgerMac(chainKey, ledger) : before.mac
  await run(changeLedgerStatusStatement, [ledger.workspaceId, status, haltReason, mac])
}

const repairWalletStatement = statement('repair-wallet', 'select repair_wallet($1, $2, $3, $4, $5, $6, $7, $8, $9)')

/** Writes a wallet's values as recomputed from its entries. The ledger must be halted. */
export async function repairWalletRow(
  run: Run,
  chainKey: KeyObject,
  before: WalletRow,
  change: Partial<WalletRow>,
): Promise<void> {
  const wallet = { ...before, ...change, revision: before.revision + 1 }
  const { workspaceId, id, balance, sequence, orderCount, head, name, status } = wallet
  const state = [balance.toFixed(), sequence, orderCount, head, name, status]
  await run(repairWalletStatement, [workspaceId, id, ...state, walletMac(chainKey, wallet)])
}

const repairLedgerStatement = statement('repair-ledger', 'select repair_ledger($1, $2, $3, $4, $5)')

/** Writes a ledger's counters as recomputed from its wallets and transfers. The ledger must be halted. */
export async function repairLedgerRow(
  run: Run,
  chainKey: KeyObject,
  before: LedgerRow,
  counters: Partial<LedgerRow>,
): Promise<void> {
  const ledger = { ...before, ...counters, revision: before.revision + 1 }
  const { workspaceId, walletCount, orderCount, lastPostedAt } = ledger
  await run(repairLedgerStatement, [workspaceId, walletCount, orderCount, lastPostedAt, ledgerMac(chainKey, ledger)])
}
