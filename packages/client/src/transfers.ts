import { allPages, itemsOf, type Page } from './pages.ts'
import { segment } from './queries.ts'
import type {
  CreateTransfer,
  CreateTransferBatch,
  ListTransfersQuery,
  ReverseTransfer,
  TransferBatch,
  TransferCompletion,
  TransferOrder,
  TransferReceipt,
} from './records.ts'
import type { CallOptions, Send } from './request.ts'
import { randomId } from './signing.ts'

/** With `walletId`, only transfers from and to this wallet. */
export type TransferListQuery = ListTransfersQuery & { walletId?: string | undefined }

/**
 * The transfers of the workspace. Reading needs the scope `transfer:read`, creating `transfer:create`, reversing
 * `transfer:reverse`. A transfer with a `holdId` also needs `hold:create`.
 */
export class Transfers {
  readonly #send: Send

  constructor(send: Send) {
    this.#send = send
  }

  /**
   * Moves money from one wallet to another.
   *
   * Give it a bizId of your own, and store it before the call: if your program ends before the response, the same call with
   * the same bizId returns the transfer that was made, or makes it. Without one, the client generates a UUID, which covers
   * its own retries. Errors have it as `bizId`.
   */
  async create(transfer: CreateTransfer, options: CallOptions = {}): Promise<TransferOrder> {
    const body: CreateTransfer = { ...transfer, bizId: transfer.bizId ?? randomId() }
    return this.#send('POST', '/api/v1/transfer/command/create', { ...options, body })
  }

  /** Makes up to 100 transfers and reversals, all or none. `batchIndex` of an ApiError is the place of the one that failed. */
  async createBatch(body: CreateTransferBatch, options: CallOptions = {}): Promise<TransferBatch> {
    return this.#send('POST', '/api/v1/transfer/command/batch', { ...options, body })
  }

  /** Moves the money of a transfer back, or a part of it. */
  async reverse(body: ReverseTransfer, options: CallOptions = {}): Promise<TransferOrder> {
    return this.#send('POST', '/api/v1/transfer/command/reverse', { ...options, body })
  }

  /** @param id the bizId or transferId */
  async get(id: string, options: CallOptions = {}): Promise<TransferOrder> {
    return this.#send('GET', orderPath(id), options)
  }

  /** @param id the bizId or transferId */
  async isCompleted(id: string, options: CallOptions = {}): Promise<boolean> {
    const { completed } = await this.#send<TransferCompletion>('GET', `${orderPath(id)}/completed`, options)
    return completed
  }

  /**
   * A signed receipt of a transfer: a compact JWS. Anybody can verify it with the keys at `/.well-known/jwks.json`.
   *
   * @param id the bizId or transferId
   */
  async receipt(id: string, options: CallOptions = {}): Promise<string> {
    const { receipt } = await this.#send<TransferReceipt>('GET', `${orderPath(id)}/receipt`, options)
    return receipt
  }

  /** One page of transfers. */
  async list({ walletId, ...query }: TransferListQuery = {}, options: CallOptions = {}): Promise<Page<TransferOrder>> {
    const path = walletId === undefined ? '' : `/wallet/${segment(walletId)}`
    return this.#send('GET', `${ordersPath}${path}`, { ...options, query })
  }

  /** All transfers, the oldest first. See "Lists" in the README for lists that change while you read. */
  listAll(
    query: Omit<TransferListQuery, 'page'> = {},
    options: CallOptions = {},
  ): AsyncGenerator<TransferOrder, void, void> {
    return itemsOf(page => this.list({ ...allPages, ...query, page }, options))
  }
}

const ordersPath = '/api/v1/transfer/query/orders'

function orderPath(id: string): string {
  return `${ordersPath}/${segment(id)}`
}
