import { allPages, itemsOf, type Page } from './pages.ts'
import { segment } from './queries.ts'
import type {
  Balance,
  BalanceAt,
  ChangeWalletStatus,
  CreateWallet,
  Flow,
  ListWalletFlowsQuery,
  ListWalletsQuery,
  Wallet,
  WalletStatement,
} from './records.ts'
import type { CallOptions, Send } from './request.ts'

/** A time: a Date, or ISO 8601 with a zone. A bare date such as `2026-11-01` is midnight UTC. */
export type Time = Date | string

/** The wallets of the workspace. Reading needs the scope `wallet:read`, changing `wallet:manage`. */
export class Wallets {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /** One page of wallets. */
  async list(query: ListWalletsQuery = {}, options: CallOptions = {}): Promise<Page<Wallet>> {
    return this.#send('GET', '/api/v1/wallets', { ...options, query })
  }

  /** All wallets, the oldest first. See "Lists" in the README for lists that change while you read. */
  listAll(query: Omit<ListWalletsQuery, 'page'> = {}, options: CallOptions = {}): AsyncGenerator<Wallet, void, void> {
    return itemsOf(page => this.list({ ...allPages, ...query, page }, options))
  }

  async get(walletId: string, options: CallOptions = {}): Promise<Wallet> {
    return this.#send('GET', `/api/v1/wallets/${segment(walletId)}`, options)
  }

  async balance(walletId: string, options: CallOptions = {}): Promise<Balance> {
    return this.#send('GET', `/api/v1/wallets/${segment(walletId)}/balance`, options)
  }

  /** The balance after all flows before a time, which is at least 30 seconds ago. A response never changes. */
  async balanceAt(walletId: string, at: Time, options: CallOptions = {}): Promise<BalanceAt> {
    const path = `/api/v1/wallets/${segment(walletId)}/balance/${timeSegment(at)}`
    return this.#send('GET', path, options)
  }

  /**
   * The sums of the flows from `from` on and before `to`, which is at least 30 seconds ago and at most 400 days after `from`.
   * A response never changes. Its lines are `allFlows` with the same times as `createdFrom` and `createdTo`.
   */
  async statement(walletId: string, from: Time, to: Time, options: CallOptions = {}): Promise<WalletStatement> {
    const path = `/api/v1/wallets/${segment(walletId)}/statement/${timeSegment(from)}/${timeSegment(to)}`
    return this.#send('GET', path, options)
  }

  /** One page of the flows of a wallet: what went in and out. */
  async flows(walletId: string, query: ListWalletFlowsQuery = {}, options: CallOptions = {}): Promise<Page<Flow>> {
    const path = `/api/v1/wallets/${segment(walletId)}/flows`
    return this.#send('GET', path, { ...options, query })
  }

  /** All flows of a wallet, the oldest first. */
  allFlows(
    walletId: string,
    query: Omit<ListWalletFlowsQuery, 'page'> = {},
    options: CallOptions = {},
  ): AsyncGenerator<Flow, void, void> {
    return itemsOf(page => this.flows(walletId, { ...allPages, ...query, page }, options))
  }

  /** Creates a wallet. The same bizId with the same currency and name returns the same wallet. */
  async create(body: CreateWallet, options: CallOptions = {}): Promise<Wallet> {
    return this.#send('POST', '/api/v1/wallet/command/create', { ...options, body })
  }

  /** Freezes, unfreezes or closes a wallet. Setting the status that it has changes nothing. */
  async changeStatus(
    walletId: string,
    status: ChangeWalletStatus['status'],
    options: CallOptions = {},
  ): Promise<Wallet> {
    const body: ChangeWalletStatus = { walletId, status }
    const path = '/api/v1/wallet/command/change-status'
    return this.#send('POST', path, { ...options, body, isRepeatable: true })
  }
}

function timeSegment(time: Time): string {
  return segment(typeof time === 'string' ? time : time.toISOString())
}
