import type { KeyObject } from 'node:crypto'
import { idFromUuid, type Uuid } from '@workspace-wallet/contract'
import { journalMac } from '../ledger/chain/journal.ts'
import {
  ModifiedRow,
  modifiedRowError,
  requireChained,
  requireSignedHold,
  requireSignedLedger,
  requireSignedWallet,
  unchainedRowError,
} from '../ledger/store/require-signed.ts'
import { positionOf, type StoredEntry, type StoredEvent, type StoredPage, type StoredTransfer } from './queries.ts'

/**
 * Checks that the service wrote the rows of a page. Every row whose columns are in an event, or in the answer, has a MAC. The MACs
 * of transfers and of the journal also cover the MAC before them, which is that of another row of the page, or was read with it.
 */
export class PageChecks {
  readonly #chainKey: KeyObject
  readonly #workspaceId: Uuid<'workspace'>
  readonly #page: StoredPage
  readonly #isFiltered: boolean
  /** The MACs of entries that are not in the page, by wallet and sequence. */
  readonly #previous: ReadonlyMap<string, string>
  /** The last entry of each wallet so far, and the last row of the journal. */
  readonly #heads = new Map<string, { sequence: number; mac: string }>()
  #journalHead = ''

  constructor(chainKey: KeyObject, workspaceId: Uuid<'workspace'>, page: StoredPage, isFiltered: boolean) {
    this.#chainKey = chainKey
    this.#workspaceId = workspaceId
    this.#page = page
    this.#isFiltered = isFiltered
    this.#previous = new Map(page.info.previous.map(([wallet, sequence, mac]) => [entryKey(wallet, sequence), mac]))
  }

  /** @throws ModifiedRow */
  requireLedger(): void {
    requireSignedLedger(this.#chainKey, this.#page.info.ledger)
  }

  /**
   * Positions have no gaps, so without a filter each one must be there. With a filter, only the events at the ends of the page are
   * known.
   *
   * @throws ModifiedRow if an event is missing
   */
  requirePositions(): void {
    const { after, last } = this.#page.info
    const positions = new Set(this.#page.events.map(positionOf))
    const expected = this.#isFiltered ? [after, last] : Array.from({ length: last - after + 1 }, (_, at) => after + at)
    const missing = expected.find(position => position > 0 && !positions.has(position))
    if (missing !== undefined)
      throw new ModifiedRow(
        'ledger',
        this.#workspaceId,
        `the event at position ${missing} was removed outside the service`,
      )
  }

  /** To be called for all events in order. @throws ModifiedRow */
  require(event: StoredEvent): void {
    if ('transfer' in event) this.#requireTransfer(event)
    else this.#requireEntry(event)
  }

  #requireTransfer({ transfer, source, target }: StoredTransfer): void {
    const { sourceWalletId, sourceSequence, targetWalletId, targetSequence } = transfer
    requireChained(this.#chainKey, {
      transfer,
      source: { ...source, previous: this.#macBefore(sourceWalletId, sourceSequence) },
      target: { ...target, previous: this.#macBefore(targetWalletId, targetSequence) },
    })
    this.#heads.set(sourceWalletId, { sequence: sourceSequence, mac: source.mac })
    this.#heads.set(targetWalletId, { sequence: targetSequence, mac: target.mac })
  }

  /** The MAC of the entry before this one. */
  #macBefore(wallet: string, sequence: number): string | null {
    const head = this.#heads.get(wallet)
    if (head?.sequence === sequence - 1) return head.mac
    return this.#previous.get(entryKey(wallet, sequence - 1)) ?? null
  }

  #requireEntry({ entry, mac, previous, hold, wallet }: StoredEntry): void {
    const before = previous ?? (this.#isFiltered ? '' : this.#journalHead)
    if (journalMac(this.#chainKey, entry, Buffer.from(before, 'hex')).toString('hex') !== mac)
      throw unchainedRowError('journal', this.#workspaceId, `event ${idFromUuid('event', entry.id)}`)
    this.#journalHead = mac
    if (entry.holdId === null) this.#requireWallet(entry.walletId, wallet)
    else this.#requireHold(entry.holdId, hold)
  }

  #requireHold(id: Uuid<'hold'>, hold: StoredEntry['hold']): void {
    const workspaceId = this.#workspaceId
    if (!hold) throw modifiedRowError('hold', workspaceId, `hold ${idFromUuid('hold', id)}`)
    requireSignedHold(this.#chainKey, hold)
  }

  #requireWallet(id: Uuid<'wallet'>, wallet: StoredEntry['wallet']): void {
    const workspaceId = this.#workspaceId
    if (!wallet) throw modifiedRowError('wallet', workspaceId, `wallet ${idFromUuid('wallet', id)}`)
    requireSignedWallet(this.#chainKey, wallet)
  }
}

function entryKey(wallet: string, sequence: number): string {
  return `${wallet}:${sequence}`
}
