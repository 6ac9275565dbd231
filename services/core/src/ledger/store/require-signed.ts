import type { KeyObject } from 'node:crypto'
import { idFromUuid, type Uuid } from '@workspace-wallet/contract'
import type { Queryable } from '../../database/statement.ts'
import { type HoldRow, holdMac } from '../../database/tables/hold.ts'
import { type LedgerRow, ledgerMac } from '../../database/tables/ledger.ts'
import { signedTables, type WithMac } from '../../database/tables/table.ts'
import { type WalletRow, walletMac } from '../../database/tables/wallet.ts'
import { continueChains, type TransferWithEntries } from '../chain/chain.ts'

/** What reads rows and checks that the service wrote them. */
export type CheckedReads = { reads: Queryable; chainKey: KeyObject }

/** A workspace whose rows were modified outside the service, and which row shows it. */
export type Breach = { workspaceId: Uuid<'workspace'>; reason: string }

/** Something that core was about to answer or to change was written outside the service. */
export class ModifiedRow extends Error {
  readonly table: ModifiedTable
  readonly breach: Breach

  constructor(table: ModifiedTable, workspaceId: Uuid<'workspace'>, reason: string) {
    super(reason)
    this.table = table
    this.breach = { workspaceId, reason }
  }
}

/** The tables of signed rows, and of rows in chains. */
export const modifiedTables = [...signedTables, 'journal', 'transfer'] as const
export type ModifiedTable = (typeof modifiedTables)[number]

/** @throws ModifiedRow */
export function requireSignedLedger(chainKey: KeyObject, ledger: WithMac<LedgerRow>): void {
  if (!ledgerMac(chainKey, ledger).equals(ledger.mac))
    throw modifiedRowError('ledger', ledger.workspaceId, 'its ledger')
}

/** @throws ModifiedRow */
export function requireSignedWallet(chainKey: KeyObject, wallet: WithMac<WalletRow>): void {
  if (!walletMac(chainKey, wallet).equals(wallet.mac))
    throw modifiedRowError('wallet', wallet.workspaceId, `wallet ${idFromUuid('wallet', wallet.id)}`)
}

/** @throws ModifiedRow */
export function requireSignedHold(chainKey: KeyObject, hold: WithMac<HoldRow>): void {
  if (!holdMac(chainKey, hold).equals(hold.mac))
    throw modifiedRowError('hold', hold.workspaceId, `hold ${idFromUuid('hold', hold.id)}`)
}

/** @throws ModifiedRow if an entry does not continue the chain of its wallet */
export function requireChained(chainKey: KeyObject, stored: TransferWithEntries): void {
  const { transfer } = stored
  if (!continueChains(chainKey, stored))
    throw unchainedRowError('transfer', transfer.workspaceId, `transfer ${idFromUuid('transfer', transfer.transferId)}`)
}

export function modifiedRowError(table: ModifiedTable, workspaceId: Uuid<'workspace'>, what: string): ModifiedRow {
  return new ModifiedRow(table, workspaceId, `the row of ${what} was modified outside the service`)
}

export function unchainedRowError(table: ModifiedTable, workspaceId: Uuid<'workspace'>, what: string): ModifiedRow {
  const reason = `${what}, or the one before it in its chain, was written outside the service`
  return new ModifiedRow(table, workspaceId, reason)
}
