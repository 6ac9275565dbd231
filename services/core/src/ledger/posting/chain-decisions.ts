import type { KeyObject } from 'node:crypto'
import { ledgerMac, walletMac } from '../../database/signed-rows.ts'
import { entryMac, transferDigest } from '../chain/chain.ts'
import type { Entry } from '../chain/transfer.ts'
import type { ChainedPostings, ChainedTransfer } from './post.ts'
import type { Decision } from './posting.ts'

/** Computes the MACs of new entries, which continue the chains of their wallets, and of the new wallet and ledger rows. */
export function chainDecisions(chainKey: KeyObject, decisions: readonly Decision[]): ChainedPostings {
  const chained = decisions.map(decision => ({ ...decision, ...chainTransfers(chainKey, decision) }))
  return {
    transfers: chained.flatMap(({ chainedTransfers }) => chainedTransfers),
    wallets: chained.flatMap(({ wallets, heads }) =>
      wallets.map(wallet => {
        const row = { ...wallet, head: heads.get(wallet.id)! }
        return { ...row, mac: walletMac(chainKey, row), previousMac: wallet.mac }
      }),
    ),
    ledgers: decisions.map(({ ledger }) => ({
      ...ledger,
      mac: ledgerMac(chainKey, ledger),
      previousMac: ledger.mac,
    })),
  }
}

type Chained = {
  chainedTransfers: ChainedTransfer[]
  /** The MAC of the last entry of each wallet. */
  heads: Map<string, Buffer>
}

function chainTransfers(chainKey: KeyObject, { transfers, entries, wallets }: Decision): Chained {
  const heads = new Map(wallets.map(wallet => [wallet.id, wallet.head]))
  const chain = (entry: Entry, digest: string) => {
    const mac = entryMac(chainKey, entry, digest, heads.get(entry.walletId)!)
    heads.set(entry.walletId, mac)
    return { balanceAfter: entry.balanceAfter, orderCount: entry.orderCount, mac }
  }
  const chainedTransfers = transfers.map((transfer, at) => {
    const digest = transferDigest(transfer)
    const source = chain(entries[2 * at]!, digest)
    return { transfer, source, target: chain(entries[2 * at + 1]!, digest) }
  })
  return { chainedTransfers, heads }
}
