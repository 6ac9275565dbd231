import type { DomainError, WalletStatus } from '@workspace-wallet/contract'
import type { LedgerRow, WalletRow } from '../../database/signed-rows.ts'
import type { Entry, Transfer } from '../chain/transfer.ts'

/**
 * Stands for a wallet id that is not in the form of one: equal texts stay equal (T004 comes before W001), and no
 * wallet is ever found under it.
 */
export function malformedWallet(text: string): string {
  return `?${text}`
}

export function isMalformedWallet(key: string): boolean {
  return key.startsWith('?')
}

/** Money that is to move from one wallet to another of one workspace. Ids are UUIDs. */
export type Posting = Omit<Transfer, 'number' | 'sourceSequence' | 'targetSequence' | 'createdAt'> & {
  /** Look for the transferId first: this may have been posted before. */
  mayBePosted: boolean
  /** Until when its caller waits, on the clock of `performance.now()`. */
  deadlineMs: number
}

/** A wallet as stored, with the MAC of its row. */
export type WalletState = WalletRow & { kind: 'CUSTOMER' | 'EXTERNAL'; status: WalletStatus; mac: Buffer }

/** A workspace's ledger as stored, with the MAC of its row and as many of its wallets as a batch touches. */
export type LedgerState = LedgerRow & {
  status: 'OPEN' | 'CLOSED' | 'HALTED'
  mac: Buffer
  wallets: ReadonlyMap<string, WalletState>
  /** Transfers that exist already, by the names under which they may be asked for again. */
  byBizId: ReadonlyMap<string, Transfer>
  byTransferId: ReadonlyMap<string, Transfer>
}

export type PostingResult =
  | { kind: 'posted'; transfer: Transfer }
  | { kind: 'replayed'; transfer: Transfer }
  | { kind: 'refused'; error: DomainError }

/** What a batch does to one ledger. `results` are in the order of the postings. */
export type Decision = {
  results: PostingResult[]
  transfers: Transfer[]
  /** Two for each transfer, in its order: what was paid, then what was received. */
  entries: Entry[]
  /** The rows as they will be, except for `head` and `mac`, which are still those of the stored rows. */
  wallets: WalletState[]
  ledger: LedgerRow & { mac: Buffer }
}

/** Every workspace of a batch. */
export function workspacesOf(postings: readonly Posting[]): string[] {
  return [...new Set(postings.map(({ workspaceId }) => workspaceId))]
}

/** Every wallet that a batch names. */
export function walletsOf(postings: readonly Posting[]): { workspaceId: string; id: string }[] {
  const wallets = new Map<string, { workspaceId: string; id: string }>()
  for (const { workspaceId, sourceWalletId, targetWalletId } of postings)
    for (const id of [sourceWalletId, targetWalletId])
      if (!isMalformedWallet(id)) wallets.set(`${workspaceId}/${id}`, { workspaceId, id })
  return [...wallets.values()]
}
