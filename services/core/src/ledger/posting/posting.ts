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

export type WalletState = WalletRow & { kind: 'CUSTOMER' | 'EXTERNAL'; status: WalletStatus }

/** A workspace's ledger as it stands under its lock, as far as a batch touches it. */
export type LedgerState = LedgerRow & {
  status: 'OPEN' | 'CLOSED' | 'HALTED'
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
  /** The rows as they will be, but for the heads of wallets. */
  wallets: WalletState[]
  ledger: LedgerRow
}
