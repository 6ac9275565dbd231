import { allPages, itemsOf, type Page } from './pages.ts'
import { segment } from './queries.ts'
import type { CreateHold, Hold, ListHoldsQuery, ReleaseHold } from './records.ts'
import type { CallOptions, Send } from './request.ts'

/** With `walletId`, only holds on this wallet. */
export type HoldListQuery = ListHoldsQuery & { walletId?: string | undefined }

/**
 * Parts of balances that are reserved. To capture a hold, create a transfer with its `holdId`. Reading needs the scope
 * `hold:read`, creating and releasing `hold:create`, capturing `hold:create` and `transfer:create`.
 */
export class Holds {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /** Reserves money of a wallet. The same bizId with the same terms returns the same hold. */
  async create(body: CreateHold, options: CallOptions = {}): Promise<Hold> {
    return this.#send('POST', '/api/v1/hold/command/create', { ...options, body })
  }

  /**
   * Ends a hold and makes what remains of it available. Releasing it again changes nothing.
   *
   * @param id the bizId or holdId
   */
  async release(id: string, options: CallOptions = {}): Promise<Hold> {
    const body: ReleaseHold = { holdId: id }
    const path = '/api/v1/hold/command/release'
    return this.#send('POST', path, { ...options, body, isRepeatable: true })
  }

  /** @param id the bizId or holdId */
  async get(id: string, options: CallOptions = {}): Promise<Hold> {
    return this.#send('GET', `${holdsPath}/${segment(id)}`, options)
  }

  /** One page of holds. */
  async list({ walletId, ...query }: HoldListQuery = {}, options: CallOptions = {}): Promise<Page<Hold>> {
    const path = walletId === undefined ? '' : `/wallet/${segment(walletId)}`
    return this.#send('GET', `${holdsPath}${path}`, { ...options, query })
  }

  /** All holds, the oldest first. See "Lists" in the README for lists that change while you read. */
  listAll(query: Omit<HoldListQuery, 'page'> = {}, options: CallOptions = {}): AsyncGenerator<Hold, void, void> {
    return itemsOf(page => this.list({ ...allPages, ...query, page }, options))
  }
}

const holdsPath = '/api/v1/hold/query/holds'
