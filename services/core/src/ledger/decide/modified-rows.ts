import type { KeyObject } from 'node:crypto'
import { idFromUuid } from '@workspace-wallet/contract'
import { holdMac } from '../../database/tables/hold.ts'
import { ledgerMac } from '../../database/tables/ledger.ts'
import { limitMac } from '../../database/tables/spending-limit.ts'
import { walletMac } from '../../database/tables/wallet.ts'
import type { Transfer } from '../chain/transfer.ts'
import type { LedgerState } from './state.ts'

/** Names the first transfer or hold of a ledger that was written outside the service; null when all are genuine. */
export function forgeryIn(chainKey: KeyObject, ledger: LedgerState, forged: readonly Transfer[]): string | null {
  const forgedHere = forged.find(({ workspaceId }) => workspaceId === ledger.workspaceId)
  if (forgedHere) return `transfer ${idFromUuid('transfer', forgedHere.transferId)} was written outside the service`
  for (const hold of ledger.holds.values())
    if (!holdMac(chainKey, hold).equals(hold.mac!))
      return `the row of hold ${idFromUuid('hold', hold.id)} was modified outside the service`
  return null
}

/**
 * Names the row of a ledger, or of a wallet or limit that the batch uses, that was modified outside the service; null when all MACs
 * are valid. A halted ledger may have been modified before it was halted. Of a closed one, nothing else is used.
 */
export function modificationIn(chainKey: KeyObject, ledger: LedgerState): string | null {
  if (ledger.status === 'HALTED') return null
  if (!ledgerMac(chainKey, ledger).equals(ledger.mac)) return 'the row of its ledger was modified outside the service'
  if (ledger.status === 'CLOSED') return null
  for (const wallet of ledger.wallets.values())
    if (!walletMac(chainKey, wallet).equals(wallet.mac))
      return `the row of wallet ${idFromUuid('wallet', wallet.id)} was modified outside the service`
  for (const limit of ledger.limits.values())
    if (!limitMac(chainKey, limit).equals(limit.mac))
      return `the limit of ${limit.subject} in ${limit.currency} was modified outside the service`
  return null
}
