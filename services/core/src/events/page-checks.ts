import type { KeyObject } from 'node:crypto'
import { Decimal, idFromUuid } from '@workspace-wallet/contract'
import { holdMac, ledgerMac, walletMac } from '../database/signed-rows.ts'
import { continueChains } from '../ledger/chain/chain.ts'
import { journalMac } from '../ledger/chain/journal.ts'
import { ModifiedRow, type ModifiedTable } from '../ledger/store/halt.ts'
import { positionOf, type StoredEntry, type StoredEvent, type StoredPage, type StoredTransfer } from './queries.ts'

/**
 * Checks that the service wrote the rows of a page. Every row whose columns are in an event, or in the answer, has a MAC. The MACs
 * of transfers and of the journal also cover the MAC before them, which is that of another row of the page, or was read with it.
 */
export class PageChecks {
  readonly #chainKey: KeyObject
  readonly #workspaceId: string
  readonly #page: StoredPage
  readonly #isFiltered: boolean
  /** The MACs of entries that are not in the page, by wallet and sequence. */
  readonly #previous: ReadonlyMap<string, string>
  /** The last entry of each wallet so far, and the last row of the journal. */
  readonly #heads = new Map<string, { sequence: number; mac: string }>()
  #journalHead = ''

  /** @param workspaceId a UUID */
  constructor(chainKey: KeyObject, workspaceId: string, page: StoredPage, isFiltered: boolean) {
    this.#chainKey = chainKey
    this.#workspaceId = workspaceId
    this.#page = page
    this.#isFiltered = isFiltered
    this.#previous = new Map(page.info.previous.map(([wallet, sequence, mac]) => [entryKey(wallet, sequence), mac]))
  }

  /** @throws ModifiedRow */
  requireLedger(): void {
    const { mac, lastPostedAt, journalHead, ...row } = this.#page.info.ledger
    const ledger = {
      ...row,
      workspaceId: this.#workspaceId,
      lastPostedAt: new Date(lastPostedAt),
      journalHead: Buffer.from(journalHead, 'hex'),
    }
    if (!isMac(ledgerMac(this.#chainKey, ledger), mac)) throw this.#modified('ledger', 'its ledger')
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
    const entries = {
      source: { ...source, previous: this.#macBefore(sourceWalletId, sourceSequence) },
      target: { ...target, previous: this.#macBefore(targetWalletId, targetSequence) },
    }
    if (!continueChains(this.#chainKey, transfer, entries))
      throw this.#unchained('transfer', `transfer ${idFromUuid('transfer', transfer.transferId)}`)
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
    if (!isMac(journalMac(this.#chainKey, entry, Buffer.from(before, 'hex')), mac))
      throw this.#unchained('journal', `event ${idFromUuid('event', entry.id)}`)
    this.#journalHead = mac
    if (entry.holdId === null) this.#requireWallet(entry.walletId, wallet)
    else this.#requireHold(entry.holdId, hold)
  }

  #requireHold(id: string, hold: StoredEntry['hold']): void {
    if (hold) {
      const { mac, captured, remaining, expiresAt, createdAt, updatedAt, ...row } = hold
      const stored = {
        ...row,
        workspaceId: this.#workspaceId,
        id,
        captured: new Decimal(captured),
        remaining: new Decimal(remaining),
        expiresAt: new Date(expiresAt),
        createdAt: new Date(createdAt),
        updatedAt: new Date(updatedAt),
      }
      if (isMac(holdMac(this.#chainKey, stored), mac)) return
    }
    throw this.#modified('hold', `hold ${idFromUuid('hold', id)}`)
  }

  #requireWallet(id: string, wallet: StoredEntry['wallet']): void {
    if (wallet) {
      const { mac, balance, held, heldUntil, head, createdAt, updatedAt, ...row } = wallet
      const stored = {
        ...row,
        workspaceId: this.#workspaceId,
        id,
        balance: new Decimal(balance),
        held: new Decimal(held),
        heldUntil: heldUntil === null ? null : new Date(heldUntil),
        head: Buffer.from(head, 'hex'),
        createdAt: new Date(createdAt),
        updatedAt: new Date(updatedAt),
      }
      if (isMac(walletMac(this.#chainKey, stored), mac)) return
    }
    throw this.#modified('wallet', `wallet ${idFromUuid('wallet', id)}`)
  }

  #modified(table: ModifiedTable, what: string): ModifiedRow {
    return new ModifiedRow(table, this.#workspaceId, `the row of ${what} was modified outside the service`)
  }

  #unchained(table: ModifiedTable, what: string): ModifiedRow {
    const reason = `${what}, or the one before it in its chain, was written outside the service`
    return new ModifiedRow(table, this.#workspaceId, reason)
  }
}

function entryKey(wallet: string, sequence: number): string {
  return `${wallet}:${sequence}`
}

function isMac(mac: Buffer, stored: string): boolean {
  return mac.toString('hex') === stored
}
