import type { KeyObject } from 'node:crypto'
import { ledgerMac, walletMac } from '../../database/signed-rows.ts'
import { entryMac, transferDigest } from '../chain/chain.ts'
import type { ChainedPostings, ChainedTransfer } from './post.ts'
import type { Decision } from './posting.ts'

/** Appends the entries of decisions to the chains of their wallets, and signs the rows. */
export function chainDecisions(chainKey: KeyObject, decisions: readonly Decision[]): ChainedPostings {
  return {
    transfers: decisions.flatMap(decision => chainTransfers(chainKey, decision)),
    wallets: decisions.flatMap(({ wallets }) =>
      wallets.map(row => ({ ...row, macBefore: row.mac, mac: walletMac(chainKey, row) })),
    ),
    ledgers: decisions.map(({ ledger }) => ({ ...ledger, macBefore: ledger.mac, mac: ledgerMac(chainKey, ledger) })),
  }
}

/** Sets the head of each wallet of the decision to the MAC of its last entry. */
function chainTransfers(chainKey: KeyObject, { transfers, entries, wallets }: Decision): ChainedTransfer[] {
  const walletById = new Map(wallets.map(wallet => [wallet.id, wallet]))
  return transfers.map((transfer, at) => {
    const digest = transferDigest(transfer)
    const [source, target] = [entries[2 * at]!, entries[2 * at + 1]!].map(entry => {
      const wallet = walletById.get(entry.walletId)!
      wallet.head = entryMac(chainKey, entry, digest, wallet.head)
      return { balanceAfter: entry.balanceAfter, orderNumber: entry.orderNumber, mac: wallet.head }
    })
    return { transfer, source: source!, target: target! }
  })
}
