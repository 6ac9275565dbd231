import type { KeyObject } from 'node:crypto'
import type { Uuid } from '@workspace-wallet/contract'
import { type HoldRow, holdMac } from '../../database/tables/hold.ts'
import { type LedgerRow, ledgerMac } from '../../database/tables/ledger.ts'
import { limitMac } from '../../database/tables/spending-limit.ts'
import { type WalletRow, walletMac } from '../../database/tables/wallet.ts'
import { entryMac, transferDigest } from '../chain/chain.ts'
import { type JournalEntry, journalMac } from '../chain/journal.ts'
import type { Entry, Transfer } from '../chain/transfer.ts'
import type { Decision, HoldState, LimitState, Replacing, WalletState } from './state.ts'

export type ChainedEvent = JournalEntry & { mac: Buffer }
/** `previousMac` is null for a new hold. */
export type ChainedHold = HoldRow & { mac: Buffer; previousMac: Buffer | null }

/** The holds to write, their events, and the wallets and ledgers as these leave them. */
export type ChainedHolds = {
  ledgers: Replacing<LedgerRow>[]
  wallets: Replacing<WalletRow>[]
  holds: ChainedHold[]
  events: ChainedEvent[]
}

/** A limit to write, and the MAC of the row that it replaces. */
export type ChainedLimit = LimitState & { previousMac: Buffer }

/** The fields of a flow that its transfer does not have. */
type ChainedEntry = Pick<Entry, 'balanceAfter' | 'orderCount'> & { mac: Buffer }
export type ChainedTransfer = { transfer: Transfer; source: ChainedEntry; target: ChainedEntry }

/** The transfers to write, and the wallets and ledgers as these leave them. */
export type ChainedPostings = {
  transfers: ChainedTransfer[]
  wallets: Replacing<WalletRow>[]
  ledgers: Replacing<LedgerRow>[]
}

/** The rows to write for one or more decisions: changes of holds first, then limits and transfers. */
export type ChainedDecisions = { holds: ChainedHolds; limits: ChainedLimit[]; postings: ChainedPostings }

/** The rows that the next step replaces: first the stored ones, then those that the changes of holds have written. */
type Rows = { ledger: LedgerRow & Replaced; wallets: Map<Uuid<'wallet'>, WalletRow & Replaced> }
type Replaced = { mac: Buffer; version: string | null }

/**
 * Computes the MACs of the new rows: flows continue the chains of their wallets, events the journal. A ledger or wallet
 * that both steps change is written twice, with a revision and a MAC each time.
 */
export function chainDecisions(chainKey: KeyObject, decisions: readonly Decision[]): ChainedDecisions {
  const chained: ChainedDecisions = {
    holds: { ledgers: [], wallets: [], holds: [], events: [] },
    limits: decisions.flatMap(({ limits }) => limits.map(limit => chainLimit(chainKey, limit))),
    postings: { ledgers: [], wallets: [], transfers: [] },
  }
  for (const decision of decisions) {
    const rows: Rows = { ledger: decision.before, wallets: new Map() }
    const holding = walletsWithHoldChanges(decision)
    if (holding.length > 0) chainHolds(chainKey, decision, holding, rows, chained.holds)
    if (decision.transfers.length > 0) chainTransfers(chainKey, decision, rows, chained.postings)
  }
  return chained
}

/** The wallets whose holds or `heldUntil` change. */
function walletsWithHoldChanges({ before, holds, wallets }: Decision): WalletState[] {
  const holding = new Set(holds.map(({ walletId }) => walletId))
  return wallets.filter(({ id, heldUntil }) => holding.has(id) || heldUntil !== before.wallets.get(id)!.heldUntil)
}

function chainHolds(
  chainKey: KeyObject,
  decision: Decision,
  holding: WalletState[],
  rows: Rows,
  to: ChainedHolds,
): void {
  const { before, after, holds } = decision
  const events = chainEvents(chainKey, decision)
  const ledger = {
    ...before,
    position: before.position + events.length,
    journalHead: events.at(-1)?.mac ?? before.journalHead,
    holdCount: after.holdCount,
    lastPostedAt: after.lastPostedAt,
    revision: before.revision + 1,
    mac: before.mac,
  }
  ledger.mac = ledgerMac(chainKey, ledger)
  rows.ledger = { ...ledger, version: null }
  to.ledgers.push({ ...ledger, previousMac: before.mac })
  to.events.push(...events)
  to.holds.push(...holds.map(hold => chainHold(chainKey, hold)))
  for (const { id, held, heldUntil, holdCount } of holding) {
    const stored = before.wallets.get(id)!
    const wallet = { ...stored, held, heldUntil, holdCount, revision: stored.revision + 1 }
    wallet.mac = walletMac(chainKey, wallet)
    rows.wallets.set(id, { ...wallet, version: null })
    to.wallets.push({ ...wallet, previousMac: stored.mac })
  }
}

function chainEvents(chainKey: KeyObject, { before, events }: Decision): ChainedEvent[] {
  let previous = before.journalHead
  return events.map(event => {
    previous = journalMac(chainKey, event, previous)
    return { ...event, mac: previous }
  })
}

function chainHold(chainKey: KeyObject, hold: HoldState): ChainedHold {
  const row = { ...hold, revision: hold.mac === null ? 1 : hold.revision + 1 }
  return { ...row, mac: holdMac(chainKey, row), previousMac: hold.mac }
}

function chainLimit(chainKey: KeyObject, limit: LimitState): ChainedLimit {
  const row = { ...limit, revision: limit.revision + 1 }
  return { ...row, mac: limitMac(chainKey, row), previousMac: limit.mac }
}

function chainTransfers(chainKey: KeyObject, decision: Decision, rows: Rows, to: ChainedPostings): void {
  const { before, after, transfers, entries, wallets } = decision
  const heads = new Map(wallets.map(wallet => [wallet.id, wallet.head]))
  const chain = (entry: Entry, digest: string) => {
    const mac = entryMac(chainKey, entry, digest, heads.get(entry.walletId)!)
    heads.set(entry.walletId, mac)
    return { balanceAfter: entry.balanceAfter, orderCount: entry.orderCount, mac }
  }
  for (const [at, transfer] of transfers.entries()) {
    const digest = transferDigest(transfer)
    const source = chain(entries[2 * at]!, digest)
    const chained: ChainedTransfer = { transfer, source, target: chain(entries[2 * at + 1]!, digest) }
    to.transfers.push(chained)
  }
  const { orderCount, position, lastPostedAt } = after
  const ledger = { ...rows.ledger, orderCount, position, lastPostedAt, revision: rows.ledger.revision + 1 }
  to.ledgers.push({ ...ledger, mac: ledgerMac(chainKey, ledger), previousMac: rows.ledger.mac })
  for (const wallet of wallets) {
    const written = rows.wallets.get(wallet.id)
    const previous = written ?? before.wallets.get(wallet.id)!
    if (wallet.sequence === previous.sequence) continue
    const row = { ...wallet, head: heads.get(wallet.id)!, revision: previous.revision + 1, version: previous.version }
    to.wallets.push({ ...row, mac: walletMac(chainKey, row), previousMac: previous.mac })
  }
}
