/** Clients that transfer money through both gateways, and record every answer. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { CoreClient } from '@workspace-wallet/core-client'
import type { Random } from '../services/random.ts'
import type { Signer } from '../services/signed-headers.ts'
import { type Answer, send } from './call.ts'

export type Wallet = { walletId: string; cents: bigint }
export type Tenant = { workspaceId: string; signers: Signer[]; wallets: Wallet[]; empty: Wallet }
export type Order = {
  bizId: string
  sourceWalletId: string
  targetWalletId: string
  amount: string
  currency: string
}

/** A transfer with the knowledge of its client. */
export type Sent = {
  order: Order
  tenant: Tenant
  signer: Signer
  /** Its wallet has no money, so that it must be rejected. */
  isExcessive: boolean
  /** `open`: in progress. `unknown`: an answer was lost, or was S003. `not done`: every answer was S002. */
  state: 'open' | 'acknowledged' | 'refused' | 'not done' | 'unknown'
  transferId: string | null
}

/** When a client gives up. */
type Patience = { timeoutMs: number; attempts: number }

export const createPath = '/api/v1/transfer/command/create'
const currency = 'USD'
const walletsEach = 8
const walletFunds = '1000000.00'
const longestPauseMs = 2_000

/** Of three clients, two wait for every answer, of which the last comes after 12 s, and one gives up early. */
const patient: Patience = { timeoutMs: 15_000, attempts: 12 }
const impatient: Patience = { timeoutMs: 1_500, attempts: 2 }
const clientPatience = [patient, impatient, patient]
const clients = 48
/** Longest pause between two transfers of a client. */
const restMs = 20

export async function makeTenant(admin: CoreClient): Promise<Tenant> {
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Chaos' })
  await admin.members.add.mutate({ workspaceId, userId: 'chaos' })
  const scopes: ('wallet:read' | 'transfer:read' | 'transfer:create')[] = [
    'wallet:read',
    'transfer:read',
    'transfer:create',
  ]
  const key = () => admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'chaos', scopes })
  const wallet = async (amount: string | null): Promise<Wallet> => {
    const { walletId } = await admin.wallets.create.mutate({ workspaceId, currency, name: 'Chaos' })
    if (!amount) return { walletId, cents: 0n }
    await admin.wallets.deposit.mutate({ workspaceId, walletId, amount, bizId: randomUUID() })
    return { walletId, cents: centsOf(amount) }
  }
  return {
    workspaceId,
    signers: await Promise.all([key(), key()]),
    wallets: await Promise.all(Array.from({ length: walletsEach }, () => wallet(walletFunds))),
    empty: await wallet(null),
  }
}

export function centsOf(amount: string): bigint {
  return BigInt(amount.replace('.', ''))
}

export class Traffic {
  readonly sent: Sent[] = []
  /** Number of requests by outcome: a code, `no answer` or `connection refused`. */
  readonly answers: Record<string, number> = {}
  /** Answers that no fault explains. */
  readonly unexplained: string[] = []
  /** The slowest answer to a patient client, in milliseconds. */
  slowestMs = 0
  requests = 0
  acknowledged = 0
  readonly #tenants: Tenant[]
  readonly #gatewayUrls: string[]
  readonly #random: Random
  #clients: Promise<void>[] = []
  #isRunning = false
  #acknowledgedAt = performance.now()
  #noAnswerMs = 0

  constructor(tenants: Tenant[], gatewayUrls: string[], random: Random) {
    this.#tenants = tenants
    this.#gatewayUrls = gatewayUrls
    this.#random = random
  }

  start(): void {
    this.#isRunning = true
    this.#clients = Array.from({ length: clients }, (_, number) => this.#client(number))
  }

  /** Resolves when every client has finished its transfer. */
  async stop(): Promise<void> {
    this.#isRunning = false
    await Promise.all(this.#clients)
  }

  /** Sends one new transfer once. Returns whether it was acknowledged. */
  async probe(gatewayUrl: string): Promise<boolean> {
    const sent = this.#next(this.#random.pick(this.#tenants), false)
    await this.#transfer(sent, { timeoutMs: 1_000, attempts: 1 }, () => gatewayUrl)
    return sent.state === 'acknowledged'
  }

  /** From now on, `noAnswerMs` is the longest time without an acknowledgement. */
  startInterruption(): void {
    this.#noAnswerMs = 0
    this.#acknowledgedAt = performance.now()
  }

  get noAnswerMs(): number {
    return Math.max(this.#noAnswerMs, performance.now() - this.#acknowledgedAt)
  }

  /** Sends an idempotent request until it gets an answer other than S002 and S003. */
  async settle(signer: Signer, method: 'GET' | 'POST', target: string, body?: object): Promise<Answer> {
    for (let attempt = 1; ; attempt++) {
      const gatewayUrl = this.#gatewayUrls[attempt % this.#gatewayUrls.length]!
      const answer = await this.#ask(signer, gatewayUrl, method, target, patient.timeoutMs, body)
      const isSettled = answer.kind === 'answer' && answer.code !== 'S002' && answer.code !== 'S003'
      if (isSettled || attempt >= patient.attempts) return answer
      await sleep(pauseMs(answer, attempt))
    }
  }

  async #client(number: number): Promise<void> {
    const tenant = this.#tenants[number % this.#tenants.length]!
    const patience = clientPatience[Math.floor(number / this.#tenants.length) % clientPatience.length]!
    while (this.#isRunning) {
      const first = this.#random.int(this.#gatewayUrls.length)
      const sent = this.#next(tenant, this.#random.chance(0.02))
      await this.#transfer(sent, patience, attempt => this.#gatewayUrls[(first + attempt) % this.#gatewayUrls.length]!)
      await sleep(this.#random.int(restMs))
    }
  }

  #next(tenant: Tenant, isExcessive: boolean): Sent {
    const { wallets, empty } = tenant
    const random = this.#random
    // Half of all transfers use one hot wallet.
    const first = random.chance(0.5) ? 0 : random.int(wallets.length)
    const second = (first + 1 + random.int(wallets.length - 1)) % wallets.length
    const [source, target] = random.chance(0.5) ? [first, second] : [second, first]
    const cents = 1 + random.int(999)
    const sent: Sent = {
      order: {
        bizId: randomUUID(),
        sourceWalletId: isExcessive ? empty.walletId : wallets[source]!.walletId,
        targetWalletId: wallets[target]!.walletId,
        amount: `${Math.floor(cents / 100)}.${String(cents % 100).padStart(2, '0')}`,
        currency,
      },
      tenant,
      signer: random.pick(tenant.signers),
      isExcessive,
      state: 'open',
      transferId: null,
    }
    this.sent.push(sent)
    return sent
  }

  /** Retries as clients should: with the same bizId, at the other gateway, after increasing pauses. */
  async #transfer(
    sent: Sent,
    { timeoutMs, attempts }: Patience,
    gatewayAt: (attempt: number) => string,
  ): Promise<void> {
    let isInDoubt = false
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const startedAt = performance.now()
      const answer = await this.#ask(sent.signer, gatewayAt(attempt), 'POST', createPath, timeoutMs, sent.order)
      if (timeoutMs === patient.timeoutMs) this.slowestMs = Math.max(this.slowestMs, performance.now() - startedAt)
      if (answer.kind === 'answer' && answer.code === '2000') return this.#acknowledge(sent, answer.data)
      if (answer.kind === 'answer' && answer.code !== 'S002' && answer.code !== 'S003') {
        sent.state = 'refused'
        if (!sent.isExcessive || answer.code !== 'T002')
          this.unexplained.push(`${sent.order.bizId} was rejected with ${answer.code}`)
        return
      }
      if (answer.kind === 'lost' || (answer.kind === 'answer' && answer.code === 'S003')) isInDoubt = true
      if (attempt < attempts) await sleep(pauseMs(answer, attempt))
    }
    sent.state = isInDoubt ? 'unknown' : 'not done'
  }

  #acknowledge(sent: Sent, data: Record<string, unknown> | null): void {
    const now = performance.now()
    this.#noAnswerMs = Math.max(this.#noAnswerMs, now - this.#acknowledgedAt)
    this.#acknowledgedAt = now
    this.acknowledged++
    sent.state = 'acknowledged'
    sent.transferId = String(data?.transferId)
    for (const [field, value] of Object.entries(sent.order))
      if (data?.[field] !== value)
        this.unexplained.push(`${sent.order.bizId} was acknowledged with a different ${field}`)
  }

  async #ask(signer: Signer, url: string, method: 'GET' | 'POST', target: string, timeoutMs: number, body?: object) {
    this.requests++
    const answer = await send(signer, url, method, target, timeoutMs, body)
    const name =
      answer.kind === 'answer' ? answer.code : answer.kind === 'lost' ? 'no answer' : ('connection refused' as const)
    this.answers[name] = (this.answers[name] ?? 0) + 1
    return answer
  }
}

/** The Retry-After of the answer, or twice the last pause, with a random part so that clients do not retry together. */
function pauseMs(answer: Answer, attempt: number): number {
  const asked = answer.kind === 'answer' ? answer.retryAfterMs : 0
  return Math.max(asked, Math.min(50 * 2 ** attempt, longestPauseMs)) * (1 + Math.random() / 2)
}
