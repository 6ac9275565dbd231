/** Clients that transfer, reverse, hold and batch through both gateways, and record every response. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Credentials } from '@workspace-wallet/client'
import { scopes } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import type { Random } from '../../cli/processes/random.ts'
import { type Answer, send } from './call.ts'
import {
  batch,
  type Command,
  centsOf,
  draw,
  hold,
  nameOf,
  type Order,
  orderBetween,
  release,
  reversal,
  transfer,
  type Wallet,
} from './commands.ts'

export type Tenant = { workspaceId: string; signers: Credentials[]; wallets: Wallet[]; empty: Wallet }

/** A command with the knowledge of its client. */
export type Sent = {
  command: Command
  tenant: Tenant
  signer: Credentials
  /** A wallet without money pays, so that it must be rejected. */
  isExcessive: boolean
  /** `open`: in progress. `unknown`: a response was lost, or was S003. `not done`: every response was S002. */
  state: 'open' | 'acknowledged' | 'refused' | 'not done' | 'unknown'
  /** Of its transfers, or of its hold. */
  ids: string[]
  /** By `performance.now()`; null before it was acknowledged. */
  acknowledgedAtMs: number | null
}

/** When a client gives up. */
type Patience = { timeoutMs: number; attempts: number }

const currency = 'USD'
const walletsEach = 8
const walletFunds = '1000000.00'
const longestPauseMs = 2_000

/** Of three clients, two wait for every response, of which the last comes after 12 s, and one gives up early. */
const patient: Patience = { timeoutMs: 15_000, attempts: 12 }
const impatient: Patience = { timeoutMs: 1_500, attempts: 2 }
const clientPatience = [patient, impatient, patient]
const clients = 48
/** In milliseconds. */
export const defaultPauseMs = 20

/** @param place its number; by default, the emptiest one */
export async function makeTenant(admin: CoreClient, place?: number): Promise<Tenant> {
  const { workspaceId } = await admin.workspaces.create.mutate({ name: 'Chaos', place })
  await admin.members.add.mutate({ workspaceId, userId: 'chaos' })
  const key = () => admin.apiKeys.create.mutate({ workspaceId, ownerUserId: 'chaos', scopes: [...scopes] })
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

export class Traffic {
  readonly sent: Sent[] = []
  /** Number of requests by outcome: a code, `no response` or `connection refused`. */
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
  readonly #pauseMs: number
  #clients: Promise<void>[] = []
  #isRunning = false
  #acknowledgedAt = performance.now()
  #noAnswerMs = 0
  #latenciesMs: number[] = []

  /** @param pauseMs the longest pause of a client between two tasks */
  constructor(tenants: Tenant[], gatewayUrls: string[], random: Random, pauseMs = defaultPauseMs) {
    this.#tenants = tenants
    this.#gatewayUrls = gatewayUrls
    this.#random = random
    this.#pauseMs = pauseMs
  }

  start(): void {
    this.#isRunning = true
    this.#clients = Array.from({ length: clients }, (_, number) => this.#client(number))
  }

  /** Resolves when every client has finished its command. */
  async stop(): Promise<void> {
    this.#isRunning = false
    await Promise.all(this.#clients)
  }

  /** Sends one new transfer once. Returns whether it was acknowledged. */
  async probe(gatewayUrl: string): Promise<boolean> {
    const tenant = this.#random.pick(this.#tenants)
    const sent = this.#begin(tenant, transfer(this.#order(tenant)), false)
    await this.#carryOut(sent, { timeoutMs: 1_000, attempts: 1 }, () => gatewayUrl)
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

  /** How long each command took that was acknowledged since the last call, with its retries, in milliseconds. */
  takeLatencies(): number[] {
    return this.#latenciesMs.splice(0)
  }

  /** Sends an idempotent request until it gets a response other than S002 and S003. */
  async settle(signer: Credentials, method: 'GET' | 'POST', target: string, body?: object): Promise<Answer> {
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
      const gatewayAt = (attempt: number) => this.#gatewayUrls[(first + attempt) % this.#gatewayUrls.length]!
      await this.#task(tenant, async (command, isExcessive = false) => {
        const sent = this.#begin(tenant, command, isExcessive)
        await this.#carryOut(sent, patience, gatewayAt)
        return sent.state === 'acknowledged'
      })
      await sleep(this.#random.int(this.#pauseMs))
    }
  }

  /** Commands that follow one another while they are acknowledged. */
  async #task(tenant: Tenant, send: (command: Command, isExcessive?: boolean) => Promise<boolean>): Promise<unknown> {
    const random = this.#random
    const order = this.#order(tenant)
    const cents = Number(centsOf(order.amount))
    const roll = random.int(100)
    if (roll < 50) return send(transfer(order))
    if (roll < 52) return send(transfer({ ...order, sourceWalletId: tenant.empty.walletId }), true)
    if (roll < 65) return (await send(transfer(order))) && send(reversal(order, 1 + random.int(cents)))
    if (roll < 80) {
      const orders = [order, ...Array.from({ length: random.int(3) }, () => this.#order(tenant))]
      if (random.chance(0.8)) return send(batch(orders, random.chance(0.3) ? 1 + random.int(cents) : null))
      return send(batch([...orders, { ...this.#order(tenant), sourceWalletId: tenant.empty.walletId }], null), true)
    }
    return this.#hold(tenant, send)
  }

  /** A hold that expires, stays open, is released, or is captured in one part or two. */
  async #hold(tenant: Tenant, send: (command: Command) => Promise<boolean>): Promise<unknown> {
    const random = this.#random
    const order = this.#order(tenant)
    const cents = Number(centsOf(order.amount))
    const isShort = random.chance(0.25)
    const wallet = { walletId: order.sourceWalletId, cents: 0n }
    const created = hold(wallet, cents + 1 + random.int(500), isShort, random)
    const { bizId } = created.holdChange!
    if (!(await send(created)) || isShort || random.chance(0.1)) return
    if (random.chance(0.3)) return send(release(bizId))
    const keepsRest = random.chance(0.5)
    if (!(await send(draw(order, bizId, keepsRest))) || !keepsRest) return
    const last = { ...order, bizId: randomUUID(), amount: '0.01' }
    return random.chance(0.5) ? send(release(bizId)) : send(draw(last, bizId, false))
  }

  #order({ wallets }: Tenant): Order {
    const random = this.#random
    // Half of all transfers use one hot wallet.
    const first = random.chance(0.5) ? 0 : random.int(wallets.length)
    const second = (first + 1 + random.int(wallets.length - 1)) % wallets.length
    const [source, target] = random.chance(0.5) ? [first, second] : [second, first]
    return orderBetween(wallets[source]!, wallets[target]!, 1 + random.int(999))
  }

  #begin(tenant: Tenant, command: Command, isExcessive: boolean): Sent {
    const signer = this.#random.pick(tenant.signers)
    const sent: Sent = { command, tenant, signer, isExcessive, state: 'open', ids: [], acknowledgedAtMs: null }
    this.sent.push(sent)
    return sent
  }

  /** Retries as clients should: with the same bizId, at the other gateway, after increasing pauses. */
  async #carryOut(
    sent: Sent,
    { timeoutMs, attempts }: Patience,
    gatewayAt: (attempt: number) => string,
  ): Promise<void> {
    const { path, body } = sent.command
    const begunAt = performance.now()
    let isInDoubt = false
    for (let attempt = 1; attempt <= attempts; attempt++) {
      const startedAt = performance.now()
      const answer = await this.#ask(sent.signer, gatewayAt(attempt), 'POST', path, timeoutMs, body)
      if (timeoutMs === patient.timeoutMs) this.slowestMs = Math.max(this.slowestMs, performance.now() - startedAt)
      if (answer.kind === 'answer' && answer.code === '2000') {
        this.#latenciesMs.push(performance.now() - begunAt)
        return this.#acknowledge(sent, answer.data)
      }
      if (answer.kind === 'answer' && answer.code !== 'S002' && answer.code !== 'S003') {
        sent.state = 'refused'
        if (!sent.isExcessive || answer.code !== 'T002')
          this.unexplained.push(`${nameOf(sent.command)} was rejected with ${answer.code}`)
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
    sent.acknowledgedAtMs = now
    sent.ids = idsOf(data)
    const { orders, holdChange } = sent.command
    const shown = recordsOf(data)
    for (const [at, order] of orders.entries())
      for (const [field, value] of Object.entries(order))
        if (shown[at]?.[field] !== value)
          this.unexplained.push(`${order.bizId} was acknowledged with a different ${field}`)
    if (orders.length === 0 && shown[0]?.bizId !== holdChange?.bizId)
      this.unexplained.push(`${nameOf(sent.command)} was acknowledged with another hold`)
  }

  async #ask(
    signer: Credentials,
    url: string,
    method: 'GET' | 'POST',
    target: string,
    timeoutMs: number,
    body?: object,
  ) {
    this.requests++
    const answer = await send(signer, url, method, target, timeoutMs, body)
    const name =
      answer.kind === 'answer' ? answer.code : answer.kind === 'lost' ? 'no answer' : ('connection refused' as const)
    this.answers[name] = (this.answers[name] ?? 0) + 1
    return answer
  }
}

/** The IDs of the transfers or of the hold in a response. */
export function idsOf(data: Answered): string[] {
  return recordsOf(data).map(({ transferId, holdId }) => String(transferId ?? holdId))
}

type Answered = Record<string, unknown> | null

function recordsOf(data: Answered): Record<string, unknown>[] {
  return (data?.transfers as Record<string, unknown>[] | undefined) ?? (data ? [data] : [])
}

/** The Retry-After of the response, or twice the last pause, with a random part so that clients do not retry together. */
function pauseMs(answer: Answer, attempt: number): number {
  const asked = answer.kind === 'answer' ? answer.retryAfterMs : 0
  return Math.max(asked, Math.min(50 * 2 ** attempt, longestPauseMs)) * (1 + Math.random() / 2)
}
