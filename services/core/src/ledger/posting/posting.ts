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

/** The MAC of a stored row, and its version: PostgreSQL's `xmin`, which every update changes, whoever makes it. */
type Stored = { mac: Buffer; version: string }

export type WalletState = WalletRow & Stored & { kind: 'CUSTOMER' | 'EXTERNAL'; status: WalletStatus }

/** A workspace's ledger as stored, with at least those of its wallets that a batch touches. */
export type LedgerState = LedgerRow &
  Stored & {
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
  /** The rows as they will be, except for `head`, `mac` and `version`, which are still those of the stored rows. */
  wallets: WalletState[]
  ledger: LedgerRow & Stored
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
