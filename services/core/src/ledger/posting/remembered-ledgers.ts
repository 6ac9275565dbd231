import type { Uuid } from '@workspace-wallet/contract'
import type { ChainedDecisions } from '../decide/chain-decisions.ts'
import { type LedgerRequest, walletsOf, workspacesOf } from '../decide/requests.ts'
import { type LedgerState, nothingLoaded, type WalletState } from '../decide/state.ts'
import type { Written } from '../store/write-transfers.ts'

/** Maximum number of wallets in memory, over all ledgers. Each takes about 1 kB. */
const defaultWalletLimit = 20_000
/** After another core has posted to a ledger, it is recalled again when this many batches in a row found it unchanged. */
const undisturbedBatches = 8
/** Maximum age of a reading of the database's clock, in milliseconds. */
const clockLifeMs = 10_000

type Remembered = { ledger: LedgerState; wallets: Map<Uuid<'wallet'>, WalletState>; undisturbed: number }

/**
 * A cache of the ledgers that this core posted to most recently. A batch whose ledgers and wallets are all cached is
 * decided from the cache and posted in one round trip. PostgreSQL compares the versions of all rows before it writes, so
 * a stale entry costs one more round trip and never leads to a wrong posting.
 */
export class RememberedLedgers {
  readonly #walletLimit: number
  /** By workspace, least recently used first. */
  readonly #ledgers = new Map<Uuid<'workspace'>, Remembered>()
  #walletCount = 0
  #clock: { databaseMs: number; readAtMs: number } | null = null

  constructor(walletLimit = defaultWalletLimit) {
    this.#walletLimit = walletLimit
  }

  /**
   * The ledgers of these requests, by workspace; null unless all ledgers and wallets can be recalled, no hold of these wallets
   * is due, and no limits are set.
   */
  recall(requests: readonly LedgerRequest[], now: Date): Map<Uuid<'workspace'>, LedgerState> | null {
    const ledgers = new Map<Uuid<'workspace'>, LedgerState>()
    for (const workspaceId of workspacesOf(requests)) {
      const found = this.#ledgers.get(workspaceId)
      // Limits have to be read.
      if (!found || found.undisturbed < undisturbedBatches || found.ledger.limitCount > 0) return null
      ledgers.set(workspaceId, found.ledger)
    }
    const isUsable = (wallet: WalletState | undefined) =>
      wallet && (wallet.heldUntil === null || wallet.heldUntil > now)
    return walletsOf(requests).every(({ workspaceId, id }) => isUsable(ledgers.get(workspaceId)!.wallets.get(id)))
      ? ledgers
      : null
  }

  /** A time that the database's clock has certainly reached; null when the last reading is too old. */
  now(): Date | null {
    if (!this.#clock) return null
    const elapsedMs = performance.now() - this.#clock.readAtMs
    return elapsedMs < clockLifeMs ? new Date(this.#clock.databaseMs + Math.floor(elapsedMs)) : null
  }

  /** Stores the rows of a batch that was just posted. */
  remember({ holds, postings }: ChainedDecisions, { now, version }: Written): void {
    // Rows that were written twice are remembered as they were written last.
    const ledgers = new Map([...holds.ledgers, ...postings.ledgers].map(row => [row.workspaceId, row]))
    const replaced = new Map([...postings.ledgers, ...holds.ledgers].map(row => [row.workspaceId, row.version]))
    const wallets = new Map([...holds.wallets, ...postings.wallets].map(row => [row.id, row]))
    this.#clock = { databaseMs: now.getTime(), readAtMs: performance.now() }
    const byWorkspace = Map.groupBy(wallets.values(), ({ workspaceId }) => workspaceId)
    for (const row of ledgers.values()) {
      const known = this.#ledgers.get(row.workspaceId)
      const isUndisturbed = known === undefined || known.ledger.version === replaced.get(row.workspaceId)
      const undisturbed = isUndisturbed ? (known?.undisturbed ?? undisturbedBatches) + 1 : 0
      const remembered = isUndisturbed && known ? known.wallets : new Map<Uuid<'wallet'>, WalletState>()
      this.forget(row.workspaceId)
      for (const { previousMac: _, ...wallet } of byWorkspace.get(row.workspaceId) ?? []) {
        // Deleted first, so that the map stays in order of last use.
        remembered.delete(wallet.id)
        remembered.set(wallet.id, { ...wallet, version } as WalletState)
      }
      const ledger = { ...row, version, wallets: remembered, ...nothingLoaded } as LedgerState
      this.#ledgers.set(row.workspaceId, { ledger, wallets: remembered, undisturbed })
      this.#walletCount += remembered.size
    }
    this.#evict()
  }

  /** Stops recalling these ledgers until enough batches have found them unchanged again. */
  distrust(workspaceIds: readonly Uuid<'workspace'>[]): void {
    for (const workspaceId of workspaceIds) {
      const known = this.#ledgers.get(workspaceId)
      if (known) known.undisturbed = 0
    }
  }

  forget(workspaceId: Uuid<'workspace'>): void {
    this.#walletCount -= this.#ledgers.get(workspaceId)?.wallets.size ?? 0
    this.#ledgers.delete(workspaceId)
  }

  /** Evicts in one pass, because each new iterator would first skip all deleted entries: 10 µs per wallet. */
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
