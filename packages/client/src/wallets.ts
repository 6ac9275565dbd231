import { everyPage, itemsOf, type Page } from './pages.ts'
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
import type { CallOptions, Request } from './request.ts'

/** A time: a Date, or ISO 8601 with a zone. A bare date such as `2026-11-01` is midnight UTC. */
export type Time = Date | string

/** The wallets of the workspace. Reading needs the scope `wallet:read`, changing `wallet:manage`. */
export class Wallets {
  readonly #request: Request

  constructor(request: Request) {
    this.#request = request
  }

  /** One page of wallets. */
  async list(query: ListWalletsQuery = {}, options: CallOptions = {}): Promise<Page<Wallet>> {
    return (await this.#request<Page<Wallet>>('GET', '/api/v1/wallets', { ...options, query })).data
  }

  /** All wallets, the oldest first. "Lists" in the README says what holds when they change meanwhile. */
  listAll(query: Omit<ListWalletsQuery, 'page'> = {}, options: CallOptions = {}): AsyncGenerator<Wallet, void, void> {
    return itemsOf(page => this.list({ ...everyPage, ...query, page }, options))
  }

  async get(walletId: string, options: CallOptions = {}): Promise<Wallet> {
    return (await this.#request<Wallet>('GET', `/api/v1/wallets/${segment(walletId)}`, options)).data
  }

  async balance(walletId: string, options: CallOptions = {}): Promise<Balance> {
    return (await this.#request<Balance>('GET', `/api/v1/wallets/${segment(walletId)}/balance`, options)).data
  }

  /** The balance after all flows before a time, which is at least 30 seconds ago. It never changes. */
  async balanceAt(walletId: string, at: Time, options: CallOptions = {}): Promise<BalanceAt> {
    const path = `/api/v1/wallets/${segment(walletId)}/balance/${timeSegment(at)}`
    return (await this.#request<BalanceAt>('GET', path, options)).data
  }

  /**
   * What went into and out of a wallet from a time on and before another one, which is at least 30 seconds ago and at most
   * 400 days later. It never changes. Its lines are `allFlows` with the same times as `createdFrom` and `createdTo`.
   */
  async statement(walletId: string, from: Time, to: Time, options: CallOptions = {}): Promise<WalletStatement> {
    const path = `/api/v1/wallets/${segment(walletId)}/statement/${timeSegment(from)}/${timeSegment(to)}`
    return (await this.#request<WalletStatement>('GET', path, options)).data
  }

  /** One page of the flows of a wallet: what went in and out. */
  async flows(walletId: string, query: ListWalletFlowsQuery = {}, options: CallOptions = {}): Promise<Page<Flow>> {
    const path = `/api/v1/wallets/${segment(walletId)}/flows`
    return (await this.#request<Page<Flow>>('GET', path, { ...options, query })).data
  }

  /** All flows of a wallet, the oldest first. */
  allFlows(
    walletId: string,
    query: Omit<ListWalletFlowsQuery, 'page'> = {},
    options: CallOptions = {},
  ): AsyncGenerator<Flow, void, void> {
    return itemsOf(page => this.flows(walletId, { ...everyPage, ...query, page }, options))
  }

  /** Creates a wallet. The same bizId with the same currency and name returns the same wallet. */
  async create(body: CreateWallet, options: CallOptions = {}): Promise<Wallet> {
    return (await this.#request<Wallet>('POST', '/api/v1/wallet/command/create', { ...options, body })).data
  }

  /** Freezes, unfreezes or closes a wallet. Setting the status that it has changes nothing. */
  async changeStatus(
    walletId: string,
    status: ChangeWalletStatus['status'],
    options: CallOptions = {},
  ): Promise<Wallet> {
    const body: ChangeWalletStatus = { walletId, status }
    const path = '/api/v1/wallet/command/change-status'
    return (await this.#request<Wallet>('POST', path, { ...options, body, isRepeatable: true })).data
  }
}

function timeSegment(time: Time): string {
  return segment(typeof time === 'string' ? time : time.toISOString())
}
