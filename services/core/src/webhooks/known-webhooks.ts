import type { KeyObject } from 'node:crypto'
import type { Uuid } from '@workspace-wallet/contract'
import type { Queryable } from '../database/statement.ts'
import { webhookMac } from '../database/tables/webhook.ts'
import { readWebhookRows } from './queries.ts'

/** As text, these take some 25 MB. */
const maxKnown = 250_000
/** How many of them are looked up at a time, and how many rows are checked at a time. */
const lookedUp = 2_000
const checked = 500
/** After forged rows were seen, and between two checks of all rows. */
const neededMs = 10 * 60_000
const checkAgainMs = 10_000

const first = '00000000-0000-0000-0000-000000000000' as Uuid<'webhook'>

/**
 * The genuine webhooks of a place, as far as this core has seen them, also if they were modified since. Whoever has the password of the
 * service's role can insert any number of rows that are due, and PostgreSQL cannot tell them from genuine ones. After a core has seen such
 * rows, it looks for the webhooks that it knows before it looks for others, and checks the rows of all webhooks to know the rest. It also
 * does so once after its start.
 */
export class KnownWebhooks {
  readonly #reads: Queryable
  readonly #chainKey: KeyObject
  #known = new Set<Uuid<'webhook'>>()
  /** Those of them whose rows were modified since. */
  #modified = new Set<Uuid<'webhook'>>()
  /** The known webhooks in the order in which they are looked up, and the place of the next one. */
  #order: Uuid<'webhook'>[] = []
  #place = 0
  /** Until when they are needed, by `performance.now()`. */
  #neededUntilMs = Number.NEGATIVE_INFINITY
  /** The check of all rows that has begun: the last one that was checked, and what was found or remembered so far. */
  #check: { last: Uuid<'webhook'>; found: Set<Uuid<'webhook'>> } | undefined
  /** When the next check begins. Before the first one has ended, always. */
  #checkFromMs = Number.NEGATIVE_INFINITY

  constructor(reads: Queryable, chainKey: KeyObject) {
    this.#reads = reads
    this.#chainKey = chainKey
  }

  /** Whether a search by due time may not get to all genuine webhooks, or this core has not checked all rows since its start. */
  get areNeeded(): boolean {
    return this.#checkFromMs === Number.NEGATIVE_INFINITY || performance.now() < this.#neededUntilMs
  }

  /** Call it when rows were found that the service has not written. */
  need(): void {
    this.#neededUntilMs = performance.now() + neededMs
  }

  /** Call it with a webhook whose row is genuine. */
  remember(id: Uuid<'webhook'>): void {
    // A check that nobody continues would grow with every webhook that is ever leased.
    if (!this.areNeeded) this.#check = undefined
    this.#check?.found.add(id)
    this.#modified.delete(id)
    if (this.#known.has(id)) return
    if (this.#known.size >= maxKnown) this.#keep(new Set())
    this.#known.add(id)
    this.#order.push(id)
  }

  /** Whether this core has seen a genuine row of the webhook. */
  has(id: Uuid<'webhook'>): boolean {
    return this.#known.has(id)
  }

  /** Call it with a webhook whose row is not genuine. If it is known, it is no longer looked up first, as it would crowd out others. */
  noteModified(id: Uuid<'webhook'>): void {
    if (this.has(id)) this.#modified.add(id)
  }

  /** All of them in parts, without those that were modified. The next call begins where this one was left. */
  *parts(): Generator<Uuid<'webhook'>[]> {
    for (let left = this.#order.length; left > 0; left -= lookedUp) {
      const part = this.#order.slice(this.#place, this.#place + Math.min(left, lookedUp))
      this.#place = this.#place + part.length < this.#order.length ? this.#place + part.length : 0
      yield part.filter(id => !this.#modified.has(id))
    }
  }

  /** Checks rows until this time, by `performance.now()`, or until all were checked. The next call goes on from there. */
  async check(untilMs: number): Promise<void> {
    while (performance.now() >= this.#checkFromMs && performance.now() < untilMs) {
      this.#check ??= { last: first, found: new Set() }
      const check = this.#check
      const rows = await readWebhookRows(this.#reads, check.last, checked)
      for (const row of rows) {
        if (row.deletedAt !== null) continue
        if (this.#isGenuine(row)) this.remember(row.id)
        else if (this.has(row.id)) {
          // It stays known: lines about it must not be lost among those about forged rows.
          check.found.add(row.id)
          this.noteModified(row.id)
        }
      }
      // Known webhooks are no longer needed.
      if (check !== this.#check) return
      if (rows.length === checked) {
        check.last = rows.at(-1)!.id
        continue
      }
      // Those that were deleted since are left out.
      this.#keep(check.found)
      this.#check = undefined
      this.#checkFromMs = performance.now() + checkAgainMs
    }
  }

  #isGenuine({ mac, ...row }: Awaited<ReturnType<typeof readWebhookRows>>[number]): boolean {
    return webhookMac(this.#chainKey, row).equals(mac)
  }

  #keep(ids: Set<Uuid<'webhook'>>): void {
    this.#known = ids
    for (const id of this.#modified) if (!ids.has(id)) this.#modified.delete(id)
    this.#order = [...ids]
    this.#place = 0
  }
}
