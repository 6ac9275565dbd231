import type { Uuid } from '@workspace-wallet/contract'
import type { HoldRow } from '../../database/tables/hold.ts'
import type { LedgerRow } from '../../database/tables/ledger.ts'
import type { LimitRow } from '../../database/tables/spending-limit.ts'
import type { WalletRow } from '../../database/tables/wallet.ts'
import type { JournalEntry } from '../chain/journal.ts'
import type { Entry, Transfer } from '../chain/transfer.ts'
import type { RequestResult } from './requests.ts'

/** The MAC of a stored row, and its version: PostgreSQL's `xmin`, which every update changes. */
export type Stored = { mac: Buffer; version: string }

/**
 * A row to write, with its MAC, and the MAC and the version of the row that it replaces. The version is null if the same
 * transaction has written that row.
 */
export type Replacing<Row> = Row & { mac: Buffer; previousMac: Buffer; version: string | null }

export type WalletState = WalletRow & Stored

/** The MAC of the stored hold; null for one that this batch creates. */
export type HoldState = HoldRow & { mac: Buffer | null }

export type LimitState = LimitRow & { mac: Buffer }

/** A workspace's ledger as stored, with at least the rows that the batch uses. */
export type LedgerState = LedgerRow &
  Stored & {
    wallets: ReadonlyMap<Uuid<'wallet'>, WalletState>
    /** Existing transfers that the batch may repeat or reverse. */
    byBizId: ReadonlyMap<string, Transfer>
    byTransferId: ReadonlyMap<Uuid<'transfer'>, Transfer>
    /** The sum of the reversals of each of these transfers; absent without reversals. */
    reversedAmounts: ReadonlyMap<Uuid<'transfer'>, string>
    /** Holds that the batch names, and open holds of its wallets that are due. */
    holds: ReadonlyMap<Uuid<'hold'>, HoldState>
    /** The limits of the API keys and wallets that the batch uses, by `limitKey`. */
    limits: ReadonlyMap<string, LimitState>
    /** The wallets with due holds, and when the first of their other open holds expires; null without any. */
    nextExpiries: ReadonlyMap<Uuid<'wallet'>, Date | null>
    /** Whether more holds are due than one batch expires. */
    hasMoreDueHolds: boolean
  }

/** The part of a ledger's state that a batch under lock looks up. A batch from memory needs none of it. */
export const nothingLoaded = {
  byBizId: new Map(),
  byTransferId: new Map(),
  reversedAmounts: new Map(),
  holds: new Map(),
  limits: new Map(),
  nextExpiries: new Map(),
  hasMoreDueHolds: false,
} satisfies Partial<LedgerState>

/** The effect of a batch on one ledger. `results` are in the order of the requests. */
export type Decision = {
  results: RequestResult[]
  /** The ledger as stored, and its new row, except for `journalHead` and `mac`. */
  before: LedgerState
  after: LedgerRow
  events: JournalEntry[]
  /** The holds that were created or changed. */
  holds: HoldState[]
  /** The limits that count something of this batch. */
  limits: LimitState[]
  transfers: Transfer[]
  /** Two per transfer, in the order of the transfers: first the source's (OUT), then the target's (IN). */
  entries: Entry[]
  /** The wallets that were changed. `head`, `revision`, `mac` and `version` are still those of the stored rows. */
  wallets: WalletState[]
}
