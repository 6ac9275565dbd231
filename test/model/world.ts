/** The system of a model test: two cores and two gateways, which requests use in turn. */

import { idFromUuid, mintId, type ReceiptKeys, type Uuid, uuidFromId } from '@workspace-wallet/contract'
import { type CoreClient, type CoreErrorData, createCoreClient } from '@workspace-wallet/core-client'
import { batchPath, call, createPath } from '../setup/client.ts'
import { query } from '../setup/database.ts'
import { hourMs, readAnHourLater } from '../setup/past.ts'
import { type System, startSystem } from '../setup/system.ts'
import { until } from '../setup/until.ts'
import { createTenant } from '../setup/workspaces.ts'
import { keyLimits } from './books.ts'
import { otherName } from './operations.ts'
import type { Answer, PastRead, Read, Request, StatusChange, WalletCreation } from './requests.ts'

export type LoggedEvent = {
  eventId: string
  position: number
  type: string
  timestamp: string
  workspaceId: string
  // biome-ignore lint/suspicious/noExplicitAny: by type
  data: any
}

export type TransferMacs = { source: string; target: string }

export type EventPage = { content: LoggedEvent[]; last: number; lastEventId: string | null; more: boolean }

type Workspace = { workspaceId: string; apiKey: string; apiSecret: string }

const commandPaths = {
  transfer: createPath,
  batch: batchPath,
  reversal: '/api/v1/transfer/command/reverse',
  hold: '/api/v1/hold/command/create',
  release: '/api/v1/hold/command/release',
  wallet: '/api/v1/wallet/command/create',
  status: '/api/v1/wallet/command/change-status',
} as const

const readPaths: Record<Read['what'], (id: string) => string> = {
  receipt: id => `/api/v1/transfer/query/orders/${id}/receipt`,
  wallet: id => `/api/v1/wallets/${id}`,
  balance: id => `/api/v1/wallets/${id}/balance`,
  order: id => `/api/v1/transfer/query/orders/${id}`,
  hold: id => `/api/v1/hold/query/holds/${id}`,
}

const walletFields = ['walletId', 'sourceWalletId', 'targetWalletId']

export class World {
  readonly system: System
  readonly #cores: CoreClient[]
  readonly #workspace: Workspace
  /** Wallet IDs by name. Resolved when the wallet is created. */
  readonly #walletIds = new Map<string, PromiseWithResolvers<string>>()
  /** IDs of holds and transfers by bizId, once they are known. */
  readonly #ids = new Map<string, string>()
  #next = 0

  private constructor(system: System, cores: CoreClient[], workspace: Workspace) {
    this.system = system
    this.#cores = cores
    this.#workspace = workspace
    this.#wallet('absent').resolve(mintId('wallet'))
    this.#wallet('malformed').resolve('no wallet at all')
    this.#wallet('foreign').resolve(system.wallets[0]!.walletId)
    this.#wallet('external').resolve(this.#wallet('Wallet 0').promise.then(() => this.#externalId()))
  }

  static start(): Promise<System> {
    return startSystem({ cores: 2, gateways: 2, oneCorePerGateway: true })
  }

  /** Creates a workspace. The system's own workspace is a foreign one to it. */
  static async open(system: System): Promise<World> {
    const cores = system.cores.map(core => createCoreClient({ url: core.url, token: system.adminToken }))
    const { workspaceId, apiKey, ...secret } = await createTenant(system)
    for (const { walletId: _, ...limit } of keyLimits)
      await system.admin.limits.set.mutate({ workspaceId, subject: { apiKey }, ...limit })
    return new World(system, cores, { workspaceId, apiKey, ...secret })
  }

  get workspaceId(): string {
    return this.#workspace.workspaceId
  }

  async close(): Promise<void> {
    await Promise.all(this.#cores.map(core => core.close()))
  }

  /** The request with IDs instead of the names of wallets, and sometimes also instead of bizIds. */
  async resolve<Any extends Request>(request: Any): Promise<Any> {
    const resolved: Record<string, unknown> = { ...request }
    for (const field of walletFields)
      if (field in resolved) resolved[field] = await this.#wallet(resolved[field] as string).promise
    if (request.kind === 'read' && isOfWallet(request.what)) resolved.id = await this.#wallet(request.id).promise
    for (const field of ['holdId', 'reversesTransferId', 'id'])
      if (field in resolved && this.#next++ % 2 === 0)
        resolved[field] = this.#ids.get(resolved[field] as string) ?? resolved[field]
    if (request.kind === 'batch')
      resolved.transfers = await Promise.all(request.transfers.map(item => this.resolve(item)))
    return resolved as Any
  }

  /** Sends a resolved request. */
  async send(request: Request): Promise<Answer> {
    switch (request.kind) {
      case 'read':
        if (request.what === 'balanceAt' || request.what === 'statement') return this.#readPast(request)
        return this.#call('GET', readPaths[request.what](encodeURIComponent(request.id)))
      case 'deposit':
      case 'withdrawal': {
        const { kind, bizId = '', ...input } = request
        const procedure = kind === 'deposit' ? 'deposit' : 'withdraw'
        return answerOf(this.#core().wallets[procedure].mutate({ workspaceId: this.workspaceId, bizId, ...input }))
      }
      case 'wallet':
        return this.#createWallet(request)
      case 'status':
        if (request.by === 'OPERATOR') return answerOf(this.#changeStatus(request))
        return this.#call('POST', commandPaths.status, bodyOf(request))
      default: {
        const answer = await this.#call('POST', commandPaths[request.kind], bodyOf(request))
        this.#keepIds(request.kind === 'batch' ? (answer.data?.transfers as Answer['data'][]) : [answer.data])
        return answer
      }
    }
  }

  /** The `data` of a GET of the public API, which is sent again after S002. @throws Error for any other code but 2000 */
  async get(path: string): Promise<Answer['data'] & object> {
    const { code, data } = await until(`GET ${path}`, async () => {
      const answer = await this.#call('GET', path)
      return answer.code !== 'S002' && answer
    })
    if (code !== '2000') throw new Error(`GET ${path}: ${code}`)
    return data!
  }

  /** All entries of a list, oldest first. */
  async list(path: string): Promise<Record<string, unknown>[]> {
    const all: Record<string, unknown>[] = []
    for (let page = 0; ; page++) {
      const data = await this.get(`${path}${path.includes('?') ? '&' : '?'}size=100&page=${page}`)
      all.push(...(data.content as Record<string, unknown>[]))
      if (page + 1 >= (data.page as { totalPages: number }).totalPages) return all.toReversed()
    }
  }

  /** All events of the workspace up to now, or all of one type. */
  async events(type?: string): Promise<LoggedEvent[]> {
    const all: LoggedEvent[] = []
    for (let after = 0; ; ) {
      const page = await this.page(after, 500, type)
      all.push(...page.content)
      if (!page.more) return all
      after = page.last
    }
  }

  /** The position of the last event. */
  async head(): Promise<number> {
    return (await this.get('/api/v1/event/query/events/head')).last as number
  }

  async page(after: number, size: number, type?: string): Promise<EventPage> {
    const filter = type === undefined ? '' : `&type=${type}`
    return (await this.get(`/api/v1/event/query/events/${after}?size=${size}${filter}`)) as unknown as EventPage
  }

  /** The public keys of receipts, from the next gateway. */
  async receiptKeys(): Promise<ReceiptKeys> {
    const { gateways } = this.system
    const answer = await fetch(`${gateways[this.#next++ % gateways.length]!.url}/.well-known/jwks.json`)
    return (await answer.json()) as ReceiptKeys
  }

  /** The MACs of the flows of each transfer, by its ID, in base64url. */
  async macs(): Promise<Map<string, TransferMacs>> {
    const rows = await query(
      this.system.database.ownerUrl,
      `select id, source_mac, target_mac from transfer where workspace_id = '${uuidFromId('workspace', this.workspaceId)}'`,
    )
    return new Map(
      rows.map(row => {
        const [source, target] = [row.source_mac, row.target_mac].map(mac => (mac as Buffer).toString('base64url'))
        return [idFromUuid('transfer', row.id as Uuid<'transfer'>), { source: source!, target: target! }]
      }),
    )
  }

  /** How many expired holds have no event yet, because no sweep has written it. */
  async dueHolds(): Promise<number> {
    const [row] = await query(
      this.system.database.ownerUrl,
      `select count(*)::int as due from hold where status = 'OPEN' and expires_at <= statement_timestamp()
       and workspace_id = '${uuidFromId('workspace', this.workspaceId)}'`,
    )
    return row!.due as number
  }

  #wallet(name: string): PromiseWithResolvers<string> {
    const wallet = this.#walletIds.get(name) ?? Promise.withResolvers<string>()
    this.#walletIds.set(name, wallet)
    return wallet
  }

  #keepIds(records: (Answer['data'] | undefined)[] = []): void {
    for (const data of records) {
      const id = data && (data.transferId ?? data.holdId)
      if (id) this.#ids.set(data.bizId as string, id as string)
    }
  }

  async #createWallet(request: WalletCreation): Promise<Answer> {
    const { name, currency } = request
    const create = () => this.#core().wallets.create.mutate({ workspaceId: this.workspaceId, name, currency })
    // Later requests wait for the wallet.
    const answer = await until('another answer than S002', async () => {
      const answer =
        request.by === 'OPERATOR'
          ? await answerOf(create())
          : await this.#call('POST', commandPaths.wallet, bodyOf(request))
      return answer.code !== 'S002' && answer
    })
    if (answer.code === '2000') this.#wallet(name.replace(otherName, '')).resolve(answer.data!.walletId as string)
    return answer
  }

  /** Reads past balances up to now: for them, an hour passes. Nothing may post meanwhile. */
  readAnHourLater(read: () => Promise<void>): Promise<void> {
    return readAnHourLater(this.system.database.ownerUrl, this.workspaceId, read)
  }

  /** Within `readAnHourLater`. */
  async #readPast(read: PastRead): Promise<Answer> {
    const [resource, times] = read.what === 'balanceAt' ? ['balance', [read.at]] : ['statement', [read.from, read.to]]
    const path = [resource, ...times.map(time => movedBy(-hourMs, time))].join('/')
    const answer = await this.#call('GET', `/api/v1/wallets/${encodeURIComponent(read.id)}/${path}`)
    for (const name of ['at', 'from', 'to'])
      if (answer.data && name in answer.data) answer.data[name] = movedBy(hourMs, answer.data[name] as string)
    return answer
  }

  #changeStatus({ walletId, status }: StatusChange): Promise<object> {
    return this.#core().wallets.changeStatus.mutate({ workspaceId: this.workspaceId, walletId, status })
  }

  async #call(method: 'GET' | 'POST', path: string, body?: object): Promise<Answer> {
    const { gateways } = this.system
    const credentials = { ...this.#workspace, baseUrl: gateways[this.#next++ % gateways.length]!.url }
    const { body: envelope, headers } = await call(credentials, method, path, body)
    const index = headers.get('x-batch-index')
    return { code: envelope.code, data: envelope.data, index: index === null ? null : Number(index) }
  }

  #core(): CoreClient {
    return this.#cores[this.#next++ % this.#cores.length]!
  }

  async #externalId(): Promise<string> {
    const [row] = await query(
      this.system.database.ownerUrl,
      `select id from wallet where kind = 'EXTERNAL' and workspace_id = '${uuidFromId('workspace', this.workspaceId)}'`,
    )
    return idFromUuid('wallet', row!.id as Uuid<'wallet'>)
  }
}

function isOfWallet(what: (Read | PastRead)['what']): boolean {
  return what !== 'order' && what !== 'hold' && what !== 'receipt'
}

function movedBy(ms: number, time: string): string {
  return new Date(Date.parse(time) + ms).toISOString()
}

function bodyOf(request: Request): object {
  const { kind: _, by: __, ...body } = request as Request & { by?: string }
  return 'transfers' in body ? { transfers: body.transfers.map(bodyOf) } : body
}

async function answerOf(call: Promise<object>): Promise<Answer> {
  try {
    return { code: '2000', data: JSON.parse(JSON.stringify(await call)), index: null }
  } catch (error) {
    const { data } = error as { data?: CoreErrorData }
    if (!data) throw error
    const { appError, code } = data
    // Between services, an input that violates the schema has no public code.
    return { code: appError?.code ?? (code === 'BAD_REQUEST' ? 'S012' : code), data: null, index: null }
  }
}
