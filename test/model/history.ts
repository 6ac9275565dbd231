/**
 * Checks the answers to concurrent clients, without knowing the order in which the system carried operations out. An
 * operation took effect at some point between its request and its answer. So the flows must be one valid order of all
 * acknowledged operations, and each rejection must be right at some point of its interval.
 */
import { Books, isSame, type Status, statusOf, textOf, unitsOf } from './books.ts'
import type { Change, Currency, Funding, Operation, Transfer } from './operations.ts'
import type { Answer, ListedFlow } from './world.ts'

/** `sent` and `answered` are times of a logical clock, without duplicates. */
export type Event<Kind = Operation> = { operation: Kind; answer: Answer; sent: number; answered: number }

type Interval = { from: number; to: number }

/** A movement of money, the requests that were answered with it, and the interval in which it took effect. */
type Movement = {
  transferId: string
  request: Transfer | Funding
  events: Event<Transfer | Funding>[]
  effect: Interval
}

export type Found = {
  /** The flows of each wallet, in order of their sequence. */
  flows: ListedFlow[][]
  orders: Record<string, unknown>[]
  balances: { balance: string; status: string }[]
}

export class History {
  readonly #events: Event[]
  readonly #found: Found
  readonly #walletIds: string[]
  readonly #currencies: Currency[]
  readonly #movements = new Map<string, Movement>()
  readonly #byBizId = new Map<string, Movement>()
  readonly #contradictions: string[] = []

  constructor(events: Event[], walletIds: string[], found: Found) {
    this.#events = events
    this.#walletIds = walletIds
    this.#found = found
    this.#currencies = walletIds.map(
      (_, wallet) =>
        events.flatMap(({ operation }) =>
          operation.kind === 'open' && operation.wallet === wallet ? [operation.currency as Currency] : [],
        )[0]!,
    )
  }

  /** All contradictions, one sentence each. */
  check(): string[] {
    this.#collectMovements()
    this.#compareOrders()
    this.#compareFlows()
    this.#replay()
    for (const event of this.#events) this.#checkAnswer(event)
    this.#checkEnd()
    return this.#contradictions
  }

  get moved(): number {
    return this.#movements.size
  }

  #contradiction(sentence: string, ...about: unknown[]): void {
    this.#contradictions.push([sentence, ...about.map(each => JSON.stringify(each))].join(' '))
  }

  /** All requests that were answered with one transferId asked for one movement. A bizId has one transferId. */
  #collectMovements(): void {
    for (const event of this.#moving()) {
      const { operation, answer } = event
      if (answer.code !== '2000') continue
      const transferId = String(answer.data!.transferId)
      const movement = this.#movements.get(transferId) ?? {
        transferId,
        request: operation,
        events: [],
        effect: { from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY },
      }
      this.#movements.set(transferId, movement)
      movement.events.push(event)
      movement.effect.from = Math.min(movement.effect.from, event.sent)
      movement.effect.to = Math.min(movement.effect.to, event.answered)
      if (!isSame(movement.request, operation))
        this.#contradiction('one transfer answers two requests:', movement.request, operation)
      if (operation.bizId === undefined) {
        if (movement.events.length > 1) this.#contradiction('two requests without a bizId got one transfer:', answer)
        continue
      }
      const named = this.#byBizId.get(operation.bizId)
      if (named && named !== movement) this.#contradiction('one bizId has two transfers:', named.transferId, answer)
      this.#byBizId.set(operation.bizId, movement)
    }
    for (const { events } of this.#movements.values()) {
      const datas = new Set(events.map(({ answer: { data } }) => JSON.stringify(data)))
      if (datas.size > 1) this.#contradiction('one transfer was answered with different data:', ...datas)
      const sent = events.map(({ operation }) => operation.amount)
      // The amount is that of the first request, and it is not known which one was first.
      if (!sent.includes(String(events[0]!.answer.data!.amount)))
        this.#contradiction('an amount that nobody sent:', events[0]!.answer)
    }
  }

  /** The list of orders has exactly the acknowledged ones, with the same data. */
  #compareOrders(): void {
    const expected = [...this.#movements.values()].filter(({ request }) => request.kind === 'transfer')
    if (this.#found.orders.length !== expected.length)
      this.#contradiction(`${expected.length} orders were acknowledged, and ${this.#found.orders.length} are listed`)
    for (const order of this.#found.orders) {
      const acknowledged = this.#movements.get(String(order.transferId))?.events[0]?.answer.data
      if (JSON.stringify(acknowledged) !== JSON.stringify(order))
        this.#contradiction('an order is not as it was acknowledged:', order, acknowledged)
    }
  }

  /** The flows are exactly those of the acknowledged movements. */
  #compareFlows(): void {
    const seen = new Map<string, string[]>()
    for (const [wallet, flows] of this.#found.flows.entries())
      for (const [at, flow] of flows.entries()) {
        if (flow.sequence !== at + 1)
          this.#contradiction(`flow ${at + 1} of wallet ${wallet} has another sequence:`, flow)
        const sides = seen.get(flow.transferId) ?? []
        seen.set(flow.transferId, [...sides, `${flow.direction} ${wallet} ${flow.type} ${flow.amount}`])
      }
    for (const { transferId, request, events } of this.#movements.values()) {
      const { amount } = events[0]!.answer.data!
      const expected =
        request.kind === 'transfer'
          ? [`OUT ${request.source} TRANSFER ${amount}`, `IN ${request.target} TRANSFER ${amount}`]
          : [
              request.kind === 'deposit'
                ? `IN ${request.wallet} DEPOSIT ${amount}`
                : `OUT ${request.wallet} WITHDRAWAL ${amount}`,
            ]
      const sides = seen.get(transferId) ?? []
      if (sides.toSorted().join() !== expected.toSorted().join())
        this.#contradiction(`${transferId} has the flows`, sides, expected)
      seen.delete(transferId)
    }
    for (const [transferId, sides] of seen) this.#contradiction(`${transferId} was not acknowledged to anybody:`, sides)
  }

  /**
   * The sequences of the wallets give an order of all movements. In this order, the balances must be those of the flows,
   * and no movement may precede another one that was answered before its own request.
   */
  #replay(): void {
    const balances = this.#walletIds.map(() => 0n)
    const next = this.#walletIds.map(() => 0)
    const heads = (transferId: string) =>
      next.flatMap((at, wallet) => (this.#found.flows[wallet]![at]?.transferId === transferId ? [wallet] : []))
    for (let isMoving = true; isMoving; ) {
      isMoving = false
      for (const [wallet, flows] of this.#found.flows.entries()) {
        const flow = flows[next[wallet]!]
        const request = flow && this.#movements.get(flow.transferId)?.request
        if (!request) continue
        const touched = heads(flow.transferId)
        if (touched.length !== (request.kind === 'transfer' ? 2 : 1)) continue
        for (const each of touched) this.#apply(each, this.#found.flows[each]![next[each]!]!, balances)
        for (const each of touched) next[each]!++
        isMoving = true
      }
    }
    for (const [wallet, flows] of this.#found.flows.entries()) {
      if (next[wallet] !== flows.length)
        this.#contradiction(`the flows of wallet ${wallet} cannot be ordered with those of other wallets`)
      let latestSent = 0
      for (const { transferId, sequence } of flows) {
        const effect = this.#movements.get(transferId)?.effect
        if (!effect) continue
        if (effect.to < latestSent)
          this.#contradiction(`flow ${sequence} of wallet ${wallet} was answered before the request of an earlier flow`)
        latestSent = Math.max(latestSent, effect.from)
      }
    }
  }

  #apply(wallet: number, flow: ListedFlow, balances: bigint[]): void {
    const units = unitsOf(flow.amount)
    balances[wallet]! += flow.direction === 'IN' ? units : -units
    if (balances[wallet]! < 0n) this.#contradiction(`wallet ${wallet} is below zero after flow ${flow.sequence}`)
    const expected = textOf(balances[wallet]!, this.#currencies[wallet]!)
    if (flow.balanceAfter !== expected) this.#contradiction(`wallet ${wallet} should hold ${expected} after`, flow)
  }

  #checkAnswer(event: Event): void {
    const { operation, answer } = event
    if (operation.kind === 'open') return
    if (answer.code === 'S002') return
    if ('amount' in operation) this.#checkMovement({ ...event, operation })
    else this.#checkChange({ ...event, operation })
  }

  #checkMovement(event: Event<Transfer | Funding>): void {
    const { operation, answer, sent, answered } = event
    const { code } = answer
    const [source] = sidesOf(operation)
    const existing = operation.bizId === undefined ? undefined : this.#byBizId.get(operation.bizId)
    if (code === '2000') {
      const { effect } = this.#movements.get(String(answer.data!.transferId))!
      if (!this.#mayBeActive(operation, effect))
        this.#contradiction('money moved through a wallet that was not active:', event)
      return
    }
    const constantCode = constantCodeOf(operation, this.#currencies)
    if (code === 'S012') {
      if (constantCode !== 'S012') this.#contradiction('a valid request was rejected with S012:', event)
      return
    }
    if (code === 'T005') {
      const isConflict = existing && !isSame(existing.request, operation) && existing.effect.from < answered
      if (!isConflict) this.#contradiction('there was no conflict of the bizId:', event)
      return
    }
    if (existing && existing.effect.to < sent) this.#contradiction('the bizId existed already:', event)
    if (constantCode !== null) {
      if (code !== constantCode && !(constantCode === 'T003' && code === 'W002' && this.#mayBeInactive(event)))
        this.#contradiction(`the code should be ${constantCode}:`, event)
      return
    }
    if (code === 'W002') {
      if (!this.#mayBeInactive(event)) this.#contradiction('both wallets were active during the whole interval:', event)
    } else if (code === 'T002') {
      const possible = typeof source === 'number' ? this.#balances(source, { from: sent, to: answered }) : []
      if (!this.#mayBeActive(operation, { from: sent, to: answered }))
        this.#contradiction('the code should be W002:', event)
      if (!possible.some(balance => balance < unitsOf(operation.amount)))
        this.#contradiction('the balance sufficed:', event)
    } else this.#contradiction('no rule explains this code:', event)
  }

  #mayBeActive(operation: Transfer | Funding, interval: Interval): boolean {
    return sidesOf(operation).every(
      wallet => typeof wallet !== 'number' || this.#statuses(wallet, interval).has('ACTIVE'),
    )
  }

  #mayBeInactive({ operation, sent, answered }: Event<Transfer | Funding>): boolean {
    return sidesOf(operation).some(wallet => {
      if (typeof wallet !== 'number') return false
      const possible = this.#statuses(wallet, { from: sent, to: answered })
      return possible.has('FROZEN') || possible.has('CLOSED')
    })
  }

  #checkChange(event: Event<Change>): void {
    const { operation, answer, sent, answered } = event
    const interval = { from: sent, to: answered }
    const statuses = this.#statuses(operation.wallet, interval, event)
    const balances = this.#balances(operation.wallet, interval)
    const isRight =
      answer.code === '2000'
        ? operation.kind === 'close'
          ? statuses.has('CLOSED') || balances.includes(0n)
          : statuses.has('ACTIVE') || statuses.has('FROZEN')
        : answer.code === 'NOT_ALLOWED'
          ? operation.kind !== 'close' && statuses.has('CLOSED')
          : answer.code === 'WALLET_HOLDS_MONEY' &&
            operation.kind === 'close' &&
            balances.some(balance => balance !== 0n)
    if (!isRight) this.#contradiction('a change of status had a wrong answer:', event)
  }

  /** The balances that a wallet may have had at some point of an interval. */
  #balances(wallet: number, { from, to }: Interval): bigint[] {
    let [first, last] = [0, 0]
    const balances = [0n]
    for (const [at, { transferId, direction, amount }] of this.#found.flows[wallet]!.entries()) {
      const effect = this.#movements.get(transferId)?.effect
      balances.push(balances[at]! + (direction === 'IN' ? unitsOf(amount) : -unitsOf(amount)))
      if (!effect) continue
      if (effect.to < from) first = at + 1
      if (last === at && effect.from < to) last = at + 1
    }
    return balances.slice(first, Math.max(first, last) + 1)
  }

  /** The statuses that a wallet may have had at some point of an interval, without the effect of `without`. */
  #statuses(wallet: number, { from, to }: Interval, without?: Event): Set<Status> {
    const done = this.#events.filter(
      (event): event is Event<Change> =>
        isChange(event.operation) &&
        event.operation.wallet === wallet &&
        event.answer.code === '2000' &&
        event.sent !== without?.sent,
    )
    const begun = done.filter(({ sent }) => sent < to)
    const before = done.filter(({ answered }) => answered < from)
    const isOver = (end: number) => before.some(later => later.sent > end)
    const possible = new Set<Status>()
    if (before.length === 0) possible.add('ACTIVE')
    for (const { operation, answered } of begun) if (!isOver(answered)) possible.add(statusOf[operation.kind])
    return possible
  }

  /** Final balances and statuses, and the sums over all wallets. */
  #checkEnd(): void {
    const end = { from: Number.MAX_SAFE_INTEGER - 1, to: Number.MAX_SAFE_INTEGER }
    const sums = new Map<Currency, bigint>()
    for (const [wallet, { balance, status }] of this.#found.balances.entries()) {
      const currency = this.#currencies[wallet]!
      const [held] = this.#balances(wallet, end)
      if (balance !== textOf(held!, currency))
        this.#contradiction(`wallet ${wallet} holds ${balance}, and its flows say ${held}`)
      if (!this.#statuses(wallet, end).has(status as Status)) this.#contradiction(`wallet ${wallet} is ${status}`)
      sums.set(currency, (sums.get(currency) ?? 0n) + unitsOf(balance))
    }
    for (const { request } of this.#movements.values()) {
      if (request.kind === 'transfer') continue
      const currency = this.#currencies[request.wallet as number]!
      const units = request.kind === 'deposit' ? unitsOf(request.amount) : -unitsOf(request.amount)
      sums.set(currency, sums.get(currency)! - units)
    }
    for (const [currency, sum] of sums)
      if (sum !== 0n) this.#contradiction(`the sum of ${currency} is off by ${sum} units`)
  }

  *#moving(): Generator<Event<Transfer | Funding>> {
    for (const event of this.#events) {
      const { operation } = event
      if ('amount' in operation) yield { ...event, operation }
    }
  }
}

function isChange(operation: Operation): operation is Change {
  return operation.kind === 'freeze' || operation.kind === 'unfreeze' || operation.kind === 'close'
}

function sidesOf(operation: Transfer | Funding) {
  if (operation.kind === 'transfer') return [operation.source, operation.target]
  return operation.kind === 'deposit' ? [null, operation.wallet] : [operation.wallet, null]
}

/**
 * The code that a request gets whatever the balances and statuses of the wallets are; null when it depends on them. In
 * books whose wallets are all active and empty, any other request fails with T002 or succeeds.
 */
function constantCodeOf(operation: Transfer | Funding, wallets: Currency[]): string | null {
  const books = new Books()
  for (const currency of wallets) books.open(currency)
  const { code } = operation.kind === 'transfer' ? books.transfer(operation) : books.fund(operation)
  return code === 'T002' || code === '2000' ? null : code
}
