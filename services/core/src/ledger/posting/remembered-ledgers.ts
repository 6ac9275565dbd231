import type { ChainedPostings, Posted } from './post.ts'
import { type LedgerState, type Posting, type WalletState, walletsOf, workspacesOf } from './posting.ts'

/** Wallets in memory, of all ledgers together. Each takes about 1 kB. */
const defaultWalletLimit = 20_000
/** A ledger that another core posts to as well is locked and read, until so many batches have found it undisturbed. */
const undisturbedBatches = 8
/** How old a reading of the database's clock may be, in milliseconds. */
const clockLifeMs = 10_000

type Remembered = { ledger: LedgerState; wallets: Map<string, WalletState>; undisturbed: number }

/**
 * The ledgers that this core posted to most recently, as it left them. A batch that needs nothing else is decided from
 * here and posted in one round trip. PostgreSQL compares the versions of all rows before it writes: a state that is out of
 * date costs a round trip, and never leads to a wrong posting.
 */
export class RememberedLedgers {
  readonly #walletLimit: number
  /** In the order of their last use. */
  readonly #ledgers = new Map<string, Remembered>()
  #walletCount = 0
  #clock: { databaseMs: number; readAtMs: number } | null = null

  constructor(walletLimit = defaultWalletLimit) {
    this.#walletLimit = walletLimit
  }

  /** The ledgers of these postings, by workspace; null unless they, and all wallets of the postings, are remembered. */
  recall(postings: readonly Posting[]): Map<string, LedgerState> | null {
    const ledgers = new Map<string, LedgerState>()
    for (const workspaceId of workspacesOf(postings)) {
      const found = this.#ledgers.get(workspaceId)
      if (!found || found.undisturbed < undisturbedBatches) return null
      ledgers.set(workspaceId, found.ledger)
    }
    return walletsOf(postings).every(({ workspaceId, id }) => ledgers.get(workspaceId)!.wallets.has(id))
      ? ledgers
      : null
  }

  /** A time that the database's clock has certainly reached; null when it has not been read for a while. */
  now(): Date | null {
    if (!this.#clock) return null
    const elapsedMs = performance.now() - this.#clock.readAtMs
    return elapsedMs < clockLifeMs ? new Date(this.#clock.databaseMs + Math.floor(elapsedMs)) : null
  }

  /** Remembers rows as they were written just now. */
  remember({ ledgers, wallets }: ChainedPostings, { now, version }: Posted): void {
    this.#clock = { databaseMs: now.getTime(), readAtMs: performance.now() }
    const byWorkspace = Map.groupBy(wallets, ({ workspaceId }) => workspaceId)
    for (const row of ledgers) {
      const known = this.#ledgers.get(row.workspaceId)
      const isUndisturbed = known === undefined || known.ledger.version === row.version
      const undisturbed = isUndisturbed ? (known?.undisturbed ?? undisturbedBatches) + 1 : 0
      const remembered = isUndisturbed && known ? known.wallets : new Map<string, WalletState>()
      this.forget(row.workspaceId)
      for (const { previousMac: _, ...wallet } of byWorkspace.get(row.workspaceId) ?? []) {
        // The wallets that were used last come last.
        remembered.delete(wallet.id)
        remembered.set(wallet.id, { ...wallet, version })
      }
      const ledger = {
        ...row,
        version,
        wallets: remembered,
        byBizId: new Map(),
        byTransferId: new Map(),
      } as LedgerState
      this.#ledgers.set(row.workspaceId, { ledger, wallets: remembered, undisturbed })
      this.#walletCount += remembered.size
    }
    this.#evict()
  }

  /** Another core has posted to one of these ledgers, or may have; or a posting was found that existed already. */
  distrust(workspaceIds: readonly string[]): void {
    for (const workspaceId of workspaceIds) {
      const known = this.#ledgers.get(workspaceId)
      if (known) known.undisturbed = 0
    }
  }

  forget(workspaceId: string): void {
    this.#walletCount -= this.#ledgers.get(workspaceId)?.wallets.size ?? 0
    this.#ledgers.delete(workspaceId)
  }

  /** One pass: each new iterator would skip all entries that were deleted before it, 10 µs for each wallet. */
  #evict(): void {
    for (const [workspaceId, { wallets }] of this.#ledgers) {
      for (const id of wallets.keys()) {
        if (this.#walletCount <= this.#walletLimit) return
        wallets.delete(id)
        this.#walletCount--
      }
      this.#ledgers.delete(workspaceId)
    }
  }
}
