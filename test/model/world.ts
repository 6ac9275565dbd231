/** The system of a model test: two cores and two gateways, which operations use in turn. */

import { idFromUuid, mintId, uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, type CoreErrorData, createCoreClient } from '@workspace-wallet/core-client'
import { call, createPath } from '../setup/client.ts'
import { query } from '../setup/database.ts'
import { type System, startSystem } from '../setup/system.ts'
import { createTenant, createWallet } from '../setup/workspaces.ts'
import type { Change, Funding, Operation, Transfer, WalletRef } from './operations.ts'

export type Answer = { code: string; data: Record<string, unknown> | null }

export type ListedFlow = {
  sequence: number
  direction: 'IN' | 'OUT'
  type: string
  amount: string
  balanceAfter: string
  transferId: string
  counterpartyWalletId: string | null
  currency: string
  createdAt: string
}

type Workspace = { workspaceId: string; apiKey: string; apiSecret: string }

export class World {
  readonly system: System
  readonly #cores: CoreClient[]
  readonly #workspace: Workspace
  readonly #ids = new Map<WalletRef, Promise<string>>()
  readonly #opened = new Map<number, (walletId: string) => void>()
  #next = 0

  private constructor(system: System, cores: CoreClient[], workspace: Workspace) {
    this.system = system
    this.#cores = cores
    this.#workspace = workspace
    const foreign = system.wallets[0]!.walletId
    this.#ids.set('absent', Promise.resolve(mintId('wallet')))
    this.#ids.set('malformed', Promise.resolve('no wallet at all'))
    this.#ids.set('foreign', Promise.resolve(foreign))
    this.#ids.set('external', this.#externalId())
  }

  static start(): Promise<System> {
    return startSystem({ cores: 2, gateways: 2, oneCorePerGateway: true })
  }

  /** Creates a workspace. The system's own workspace is a foreign one to it. */
  static async open(system: System): Promise<World> {
    const cores = system.cores.map(core => createCoreClient({ url: core.url, token: system.adminToken }))
    const workspace = await createTenant(system)
    // The first wallet also creates the hidden EXTERNAL wallet.
    await createWallet({ ...system, ...workspace })
    return new World(system, cores, workspace)
  }

  get workspaceId(): string {
    return this.#workspace.workspaceId
  }

  async close(): Promise<void> {
    await Promise.all(this.#cores.map(core => core.close()))
  }

  /** The ID of a wallet. Waits until the wallet is created. */
  id(ref: WalletRef): Promise<string> {
    const known = this.#ids.get(ref)
    if (known) return known
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#ids.set(ref, promise)
    this.#opened.set(ref as number, resolve)
    return promise
  }

  async run(operation: Operation): Promise<Answer> {
    switch (operation.kind) {
      case 'open': {
        const { workspaceId } = this
        const { walletId } = await this.#core().wallets.create.mutate({
          workspaceId,
          currency: operation.currency,
          name: `Wallet ${operation.wallet}`,
        })
        void this.id(operation.wallet)
        this.#opened.get(operation.wallet)!(walletId)
        return { code: '2000', data: null }
      }
      case 'transfer':
        return this.#transfer(operation)
      case 'deposit':
      case 'withdraw':
        return this.#fund(operation)
      default:
        return this.#change(operation)
    }
  }

  /** The `data` of a GET of the public API. @throws Error for any code but 2000 */
  async get(path: string): Promise<Answer['data'] & object> {
    const answer = await call(this.#credentials(), 'GET', path)
    if (answer.body.code !== '2000') throw new Error(`GET ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }

  /** All flows of a wallet, oldest first. */
  async flows(ref: number): Promise<ListedFlow[]> {
    const flows = await this.#all(`/api/v1/wallets/${await this.id(ref)}/flows`)
    return (flows as unknown as ListedFlow[]).toReversed()
  }

  /** All orders of the workspace, oldest first. */
  async orders(): Promise<Record<string, unknown>[]> {
    return (await this.#all('/api/v1/transfer/query/orders')).toReversed()
  }

  async #all(path: string): Promise<Record<string, unknown>[]> {
    const all: Record<string, unknown>[] = []
    for (let page = 0; ; page++) {
      const data = await this.get(`${path}?size=100&page=${page}`)
      all.push(...(data.content as Record<string, unknown>[]))
      if (page + 1 >= (data.page as { totalPages: number }).totalPages) return all
    }
  }

  async #transfer({ source, target, amount, currency, bizId }: Transfer): Promise<Answer> {
    const [sourceWalletId, targetWalletId] = await Promise.all([this.id(source), this.id(target)])
    const order = { sourceWalletId, targetWalletId, amount, currency, ...(bizId !== undefined && { bizId }) }
    const { body } = await call(this.#credentials(), 'POST', createPath, order)
    return { code: body.code, data: body.data }
  }

  async #fund({ kind, wallet, amount, bizId }: Funding): Promise<Answer> {
    const input = { workspaceId: this.workspaceId, walletId: await this.id(wallet), amount }
    return answerOf(this.#core().wallets[kind].mutate({ ...input, ...(bizId !== undefined && { bizId }) }))
  }

  async #change({ kind, wallet }: Change): Promise<Answer> {
    const input = { workspaceId: this.workspaceId, walletId: await this.id(wallet) }
    return answerOf(this.#core().wallets[kind].mutate(input))
  }

  #core(): CoreClient {
    return this.#cores[this.#next++ % this.#cores.length]!
  }

  #credentials() {
    const { gateways } = this.system
    return { ...this.#workspace, baseUrl: gateways[this.#next++ % gateways.length]!.url }
  }

  async #externalId(): Promise<string> {
    const [row] = await query(
      this.system.database.ownerUrl,
      `select id from wallet where kind = 'EXTERNAL' and workspace_id = '${uuidFromId('workspace', this.workspaceId)}'`,
    )
    return idFromUuid('wallet', row!.id as string)
  }
}

async function answerOf(call: Promise<object>): Promise<Answer> {
  try {
    return { code: '2000', data: JSON.parse(JSON.stringify(await call)) }
  } catch (error) {
    const { data } = error as { data?: CoreErrorData }
    if (!data) throw error
    const { appError, code } = data
    // Between services, an input that violates the schema has no public code.
    return { code: appError?.code ?? (code === 'BAD_REQUEST' ? 'S012' : code), data: null }
  }
}
