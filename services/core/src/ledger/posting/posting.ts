import { DomainError, type WalletStatus } from '@workspace-wallet/contract'
import type { LedgerRow, WalletRow } from '../../database/signed-rows.ts'
import type { Entry, Transfer } from '../chain/transfer.ts'

/**
 * Replaces a wallet ID that is malformed. No wallet has such a key, so the posting fails with W001. Equal texts have equal
 * keys, because T004 is checked before W001.
 */
export function malformedWallet(text: string): string {
  return `?${text}`
}

export function isMalformedWallet(key: string): boolean {
  return key.startsWith('?')
}

/** A transfer to post: money to move between two wallets of one workspace. IDs are UUIDs. */
export type Posting = Omit<Transfer, 'number' | 'sourceSequence' | 'targetSequence' | 'createdAt'> & {
  /** Whether this may already be posted, so that the transferId must be looked up first. */
  mayBePosted: boolean
  /** How long the caller waits, as a time of `performance.now()`. */
  deadlineMs: number
}

/** The MAC of a stored row, and its version: PostgreSQL's `xmin`, which every update changes. */
type Stored = { mac: Buffer; version: string }

export type WalletState = WalletRow & Stored & { kind: 'CUSTOMER' | 'EXTERNAL'; status: WalletStatus }

/** A workspace's ledger as stored, with at least the wallets that the batch uses. */
export type LedgerState = LedgerRow &
  Stored & {
    status: 'OPEN' | 'CLOSED' | 'HALTED'
    wallets: ReadonlyMap<string, WalletState>
    /** Existing transfers that the batch may repeat. */
    byBizId: ReadonlyMap<string, Transfer>
    byTransferId: ReadonlyMap<string, Transfer>
  }

export type PostingResult =
  | { kind: 'posted'; transfer: Transfer }
  | { kind: 'replayed'; transfer: Transfer }
  | { kind: 'refused'; error: DomainError }

export const refusal = (error: DomainError): PostingResult => ({ kind: 'refused', error })
/** S002: certainly not posted, safe to retry. */
export const unavailable = (): PostingResult => refusal(new DomainError('S002', { retryAfterSeconds: 1 }))

/** The effect of a batch on one ledger. `results` are in the order of the postings. */
export type Decision = {
  results: PostingResult[]
  transfers: Transfer[]
  /** Two per transfer, in the order of the transfers: first the source's (OUT), then the target's (IN). */
  entries: Entry[]
  /** The new rows, except that `head`, `mac` and `version` are still those of the stored rows. */
  wallets: WalletState[]
  ledger: LedgerRow & Stored
}

/** The workspaces of a batch, each once. */
export function workspacesOf(postings: readonly Posting[]): string[] {
  return [...new Set(postings.map(({ workspaceId }) => workspaceId))]
}

/** The wallets of a batch, each once, without malformed IDs. */
export function walletsOf(postings: readonly Posting[]): { workspaceId: string; id: string }[] {
  const wallets = new Map<string, { workspaceId: string; id: string }>()
  for (const { workspaceId, sourceWalletId, targetWalletId } of postings)
    for (const id of [sourceWalletId, targetWalletId])
      if (!isMalformedWallet(id)) wallets.set(`${workspaceId}/${id}`, { workspaceId, id })
  return [...wallets.values()]
}
