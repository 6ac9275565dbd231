/** The real system under a model test: two cores, two gateways, every operation through another pair of them. */

import { idFromUuid, mintId, uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, type CoreErrorData, createCoreClient } from '@workspace-wallet/core-client'
import { call, createPath } from '../setup/client.ts'
import { query } from '../setup/database.ts'
import { type System, startSystem } from '../setup/system.ts'
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
  #turn = 0

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
    return startSystem({ cores: 2, gateways: 2 })
  }

  /** A workspace of its own on a running system; that of the system is the foreign one. */
  static async open(system: System): Promise<World> {
    const cores = system.cores.map(core => createCoreClient({ url: core.url, token: system.adminToken }))
    const { workspaceId } = await system.admin.workspaces.create.mutate({ name: 'Model' })
    await system.admin.members.add.mutate({ workspaceId, userId: 'owner' })
    const scopes = ['wallet:read', 'transfer:read', 'transfer:create'] as const
    const key = await system.admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'owner', scopes: [...scopes] })
    // So that it has a hidden EXTERNAL wallet from the beginning.
    await system.admin.wallets.create.mutate({ workspaceId, currency: 'USD', name: 'unused' })
    return new World(system, cores, { workspaceId, ...key })
  }

  get workspaceId(): string {
    return this.#workspace.workspaceId
  }

  async close(): Promise<void> {
    await Promise.all(this.#cores.map(core => core.close()))
  }

  /** The id of a wallet of the plan; waits for it to be opened. */
  id(ref: WalletRef): Promise<string> {
    const known = this.#ids.get(ref)
    if (known) return known
    const { promise, resolve } = Promise.withResolvers<string>()
    this.#ids.set(ref, promise)
    this.#opened.set(ref as number, resolve)
    return promise
  }

  async do(operation: Operation): Promise<Answer> {
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

  /** A payload of the public API. @throws when it is refused */
  async get(path: string): Promise<Answer['data'] & object> {
    const answer = await call(this.#credentials(), 'GET', path)
    if (answer.body.code !== '2000') throw new Error(`GET ${path}: ${JSON.stringify(answer.body)}`)
    return answer.body.data
  }

  /** All flows of a wallet in order, page by page. */
  async flows(ref: number): Promise<ListedFlow[]> {
    const flows = await this.#all(`/api/v1/wallets/${await this.id(ref)}/flows`)
    return (flows as unknown as ListedFlow[]).toReversed()
  }

  /** All orders of the workspace in order. */
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
    return this.#cores[this.#turn++ % this.#cores.length]!
  }

  #credentials() {
    const { gateways } = this.system
    return { ...this.#workspace, baseUrl: gateways[this.#turn++ % gateways.length]!.url }
  }

  async #externalId(): Promise<string> {
    const [row] = await query(
      this.system.database.ownerUrl,
      `select id from wallet where kind = 'EXTERNAL' and workspace_id = '${uuidFromId('workspace', this.workspaceId)}'`,
    )
    return idFromUuid('wallet', row!.id as string)
  }
}

async function answerOf(asked: Promise<object>): Promise<Answer> {
  try {
    return { code: '2000', data: JSON.parse(JSON.stringify(await asked)) }
  } catch (error) {
    const { data } = error as { data?: CoreErrorData }
    if (!data) throw error
    const { appError, code } = data
    // What the schema refuses has no public code of its own between services.
    return { code: appError?.code ?? (code === 'BAD_REQUEST' ? 'S012' : code), data: null }
  }
}
