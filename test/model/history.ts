/**
 * Judges what concurrent clients were answered, without knowing in which order the system did it. An operation took
 * effect at some point between its sending and its answer; so what the books say afterwards has to be one legal order
 * of what was acknowledged, and each refusal has to have been right at some point of its own interval.
 */
import { Books, isSame, type Status, statusOf, textOf, unitsOf } from './books.ts'
import type { Change, Currency, Funding, Operation, Transfer } from './operations.ts'
import type { Answer, ListedFlow } from './world.ts'

/** Sent and answered at moments of one clock that never shows the same twice. */
export type Event<Asked = Operation> = { operation: Asked; answer: Answer; sent: number; answered: number }

type Interval = { from: number; to: number }

/** One movement of money: everybody who was told of it, and when it can have taken effect. */
type Movement = { transferId: string; asked: Transfer | Funding; told: Event<Transfer | Funding>[]; effect: Interval }

export type Found = {
  /** Flows of each wallet of the plan, in order of sequence. */
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
  readonly #byName = new Map<string, Movement>()
  readonly #faults: string[] = []

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

  /** Everything that cannot have been, as sentences. */
  judge(): string[] {
    this.#collectMovements()
    this.#compareOrders()
    this.#compareFlows()
    this.#replay()
    for (const event of this.#events) this.#judgeAnswer(event)
    this.#judgeEnd()
    return this.#faults
  }

  get moved(): number {
    return this.#movements.size
  }

  #fault(sentence: string, ...about: unknown[]): void {
    this.#faults.push([sentence, ...about.map(each => JSON.stringify(each))].join(' '))
  }

  /** Whoever was told 2000 of one transferId was told of one movement; and a name has one. */
  #collectMovements(): void {
    for (const event of this.#moving()) {
      const { operation, answer } = event
      if (answer.code !== '2000') continue
      const transferId = String(answer.data!.transferId)
      const movement = this.#movements.get(transferId) ?? {
        transferId,
        asked: operation,
        told: [],
        effect: { from: Number.POSITIVE_INFINITY, to: Number.POSITIVE_INFINITY },
      }
      this.#movements.set(transferId, movement)
      movement.told.push(event)
      movement.effect.from = Math.min(movement.effect.from, event.sent)
      movement.effect.to = Math.min(movement.effect.to, event.answered)
      if (!isSame(movement.asked, operation))
        this.#fault('one transfer answers two requests:', movement.asked, operation)
      if (operation.bizId === undefined) {
        if (movement.told.length > 1) this.#fault('two requests without a name got one transfer:', answer)
        continue
      }
      const named = this.#byName.get(operation.bizId)
      if (named && named !== movement) this.#fault('one bizId has two transfers:', named.transferId, answer)
      this.#byName.set(operation.bizId, movement)
    }
    for (const { told } of this.#movements.values()) {
      const datas = new Set(told.map(({ answer: { data } }) => JSON.stringify(data)))
      if (datas.size > 1) this.#fault('one transfer was told in several ways:', ...datas)
      const sent = told.map(({ operation }) => operation.amount)
      // The first to ask decides the spelling, and who that was is not known.
      if (!sent.includes(String(told[0]!.answer.data!.amount))) this.#fault('an amount nobody sent:', told[0]!.answer)
    }
  }

  /** The list of orders is what was acknowledged, record for record. */
  #compareOrders(): void {
    const due = [...this.#movements.values()].filter(({ asked }) => asked.kind === 'transfer')
    if (this.#found.orders.length !== due.length)
      this.#fault(`${due.length} orders were acknowledged, and ${this.#found.orders.length} are listed`)
    for (const order of this.#found.orders) {
      const told = this.#movements.get(String(order.transferId))?.told[0]?.answer.data
      if (JSON.stringify(told) !== JSON.stringify(order))
        this.#fault('an order is not as it was acknowledged:', order, told)
    }
  }

  /** Each flow belongs to what was acknowledged, and that has its flows: no more, no less. */
  #compareFlows(): void {
    const seen = new Map<string, string[]>()
    for (const [wallet, flows] of this.#found.flows.entries())
      for (const [at, flow] of flows.entries()) {
        if (flow.sequence !== at + 1) this.#fault(`flow ${at + 1} of wallet ${wallet} has another sequence:`, flow)
        const sides = seen.get(flow.transferId) ?? []
        seen.set(flow.transferId, [...sides, `${flow.direction} ${wallet} ${flow.type} ${flow.amount}`])
      }
    for (const { transferId, asked, told } of this.#movements.values()) {
      const { amount } = told[0]!.answer.data!
      const due =
        asked.kind === 'transfer'
          ? [`OUT ${asked.source} TRANSFER ${amount}`, `IN ${asked.target} TRANSFER ${amount}`]
          : [
              asked.kind === 'deposit'
                ? `IN ${asked.wallet} DEPOSIT ${amount}`
                : `OUT ${asked.wallet} WITHDRAWAL ${amount}`,
            ]
      const sides = seen.get(transferId) ?? []
      if (sides.toSorted().join() !== due.toSorted().join()) this.#fault(`${transferId} has the flows`, sides, due)
      seen.delete(transferId)
    }
    for (const [transferId, sides] of seen) this.#fault(`nobody was told of ${transferId}:`, sides)
  }

  /**
   * The sequences of the wallets give an order of all movements. In that order the model has to reach every
   * balance_after; and nothing may stand before what was over when it was sent.
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
        const asked = flow && this.#movements.get(flow.transferId)?.asked
        if (!asked) continue
        const touched = heads(flow.transferId)
        if (touched.length !== (asked.kind === 'transfer' ? 2 : 1)) continue
        for (const each of touched) this.#apply(each, this.#found.flows[each]![next[each]!]!, balances)
        for (const each of touched) next[each]!++
        isMoving = true
      }
    }
    for (const [wallet, flows] of this.#found.flows.entries()) {
      if (next[wallet] !== flows.length) this.#fault(`the flows of wallet ${wallet} have no order with the others'`)
      let latestSent = 0
      for (const { transferId, sequence } of flows) {
        const effect = this.#movements.get(transferId)?.effect
        if (!effect) continue
        if (effect.to < latestSent)
          this.#fault(`flow ${sequence} of wallet ${wallet} was over before one before it began`)
        latestSent = Math.max(latestSent, effect.from)
      }
    }
  }

  #apply(wallet: number, flow: ListedFlow, balances: bigint[]): void {
    const units = unitsOf(flow.amount)
    balances[wallet]! += flow.direction === 'IN' ? units : -units
    if (balances[wallet]! < 0n) this.#fault(`wallet ${wallet} is below zero after flow ${flow.sequence}`)
    const due = textOf(balances[wallet]!, this.#currencies[wallet]!)
    if (flow.balanceAfter !== due) this.#fault(`wallet ${wallet} should hold ${due} after`, flow)
  }

  #judgeAnswer(event: Event): void {
    const { operation, answer } = event
    if (operation.kind === 'open') return
    if (answer.code === 'S002') return
    if ('amount' in operation) this.#judgeMoving({ ...event, operation })
    else this.#judgeChange({ ...event, operation })
  }

  #judgeMoving(event: Event<Transfer | Funding>): void {
    const { operation, answer, sent, answered } = event
    const { code } = answer
    const [source] = sidesOf(operation)
    const named = operation.bizId === undefined ? undefined : this.#byName.get(operation.bizId)
    if (code === '2000') {
      const { effect } = this.#movements.get(String(answer.data!.transferId))!
      if (!this.#mayBeActive(operation, effect)) this.#fault('money moved through a wallet that was not active:', event)
      return
    }
    // What the request alone decides, or what never changes, a model without money decides.
    const timeless = timelessCode(operation, this.#currencies)
    if (code === 'S012') {
      if (timeless !== 'S012') this.#fault('refused as malformed:', event)
      return
    }
    if (code === 'T005') {
      const isTaken = named && !isSame(named.asked, operation) && named.effect.from < answered
      if (!isTaken) this.#fault('a name was said to be taken:', event)
      return
    }
    if (named && named.effect.to < sent) this.#fault('its name was taken, and it was not told so:', event)
    if (timeless !== null) {
      if (code !== timeless && !(timeless === 'T003' && code === 'W002' && this.#mayBeInactive(event)))
        this.#fault(`${timeless} was due:`, event)
      return
    }
    if (code === 'W002') {
      if (!this.#mayBeInactive(event)) this.#fault('both wallets were active all the time:', event)
    } else if (code === 'T002') {
      const possible = typeof source === 'number' ? this.#balances(source, { from: sent, to: answered }) : []
      if (!this.#mayBeActive(operation, { from: sent, to: answered })) this.#fault('W002 was due:', event)
      if (!possible.some(balance => balance < unitsOf(operation.amount))) this.#fault('there was money enough:', event)
    } else this.#fault('no rule gives this answer:', event)
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

  #judgeChange(event: Event<Change>): void {
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
    if (!isRight) this.#fault('a change was answered wrongly:', event)
  }

  /** What a wallet can have held at some point of an interval. */
  #balances(wallet: number, { from, to }: Interval): bigint[] {
    let [least, most] = [0, 0]
    const held = [0n]
    for (const [at, { transferId, direction, amount }] of this.#found.flows[wallet]!.entries()) {
      const effect = this.#movements.get(transferId)?.effect
      held.push(held[at]! + (direction === 'IN' ? unitsOf(amount) : -unitsOf(amount)))
      if (!effect) continue
      if (effect.to < from) least = at + 1
      if (most === at && effect.from < to) most = at + 1
    }
    return held.slice(least, Math.max(least, most) + 1)
  }

  /** What status a wallet can have had at some point of an interval, when `without` had not been asked. */
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

  /** Balances and statuses at the end, and the sums over all wallets. */
  #judgeEnd(): void {
    const end = { from: Number.MAX_SAFE_INTEGER - 1, to: Number.MAX_SAFE_INTEGER }
    const sums = new Map<Currency, bigint>()
    for (const [wallet, { balance, status }] of this.#found.balances.entries()) {
      const currency = this.#currencies[wallet]!
      const [held] = this.#balances(wallet, end)
      if (balance !== textOf(held!, currency))
        this.#fault(`wallet ${wallet} holds ${balance}, and its flows say ${held}`)
      if (!this.#statuses(wallet, end).has(status as Status)) this.#fault(`wallet ${wallet} is ${status}`)
      sums.set(currency, (sums.get(currency) ?? 0n) + unitsOf(balance))
    }
    for (const { asked } of this.#movements.values()) {
      if (asked.kind === 'transfer') continue
      const currency = this.#currencies[asked.wallet as number]!
      const units = asked.kind === 'deposit' ? unitsOf(asked.amount) : -unitsOf(asked.amount)
      sums.set(currency, sums.get(currency)! - units)
    }
    for (const [currency, sum] of sums) if (sum !== 0n) this.#fault(`${sum} units of ${currency} came from nowhere`)
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
 * The refusal that a request meets whatever the wallets hold and whoever is frozen; null when there is none. It is
 * asked of empty books with all wallets open, which refuse everything else for want of money.
 */
function timelessCode(operation: Transfer | Funding, wallets: Currency[]): string | null {
  const books = new Books()
  for (const currency of wallets) books.open(currency)
  const { code } = operation.kind === 'transfer' ? books.transfer(operation) : books.fund(operation)
  return code === 'T002' || code === '2000' ? null : code
}
