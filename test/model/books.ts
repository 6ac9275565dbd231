/** The contract as a model: simple books with exact integers, which answer every request as the service should. */
import {
  type Batch,
  type Changer,
  type Currency,
  currencies,
  type Funding,
  type HoldCreation,
  isMalformed,
  isMalformedAmount,
  malformedIndex,
  type PastRead,
  type Posting,
  type Read,
  type Release,
  type Request,
  type Reversal,
  type Status,
  type StatusChange,
  type Transfer,
  type WalletCreation,
} from './requests.ts'

/** All amounts in units of 10^-18, whatever the currency. */
const scale = 18

export function unitsOf(amount: string): bigint {
  const [whole = '', fraction = ''] = amount.split('.')
  return BigInt(whole + fraction.padEnd(scale, '0'))
}

/** With exactly the decimals of the currency, like balances. */
export function textOf(units: bigint, currency: Currency): string {
  const decimals = currencies[currency]
  const digits = (units / 10n ** BigInt(scale - decimals)).toString().padStart(decimals + 1, '0')
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

type Wallet = {
  walletId: string
  bizId: string | null
  name: string
  currency: Currency
  status: Status
  frozenBy: Changer | null
  balance: bigint
  sequence: number
  createdAt: string
}

type Movement = {
  transferId: string
  bizId: string
  type: 'TRANSFER' | 'DEPOSIT' | 'WITHDRAWAL'
  /** Null for the world outside. */
  source: string | null
  target: string | null
  amount: string
  currency: Currency
  reference: string | null
  holdId: string | null
  /** What remained of the hold. */
  holdRemaining: bigint | null
  batchId: string | null
  reverses: string | null
  reversed: bigint
  balances: Record<string, { walletId: string; sequence: number; balanceAfter: string }>
  position: number
  createdAt: string
}

type Flow = {
  walletId: string
  sequence: number
  direction: 'IN' | 'OUT'
  type: Movement['type']
  amount: string
  balanceAfter: string
  currency: Currency
  transferId: string
  counterpartyWalletId: string | null
  createdAt: string
}

type Hold = {
  holdId: string
  bizId: string
  walletId: string
  currency: Currency
  amount: string
  captured: bigint
  remaining: bigint
  status: 'OPEN' | 'CAPTURED' | 'RELEASED' | 'EXPIRED'
  expiresInSeconds: number
  expiresAt: string
  reference: string | null
  createdAt: string
  updatedAt: string
}

/** What may leave a wallet in a currency, or, if `walletId` is null, what the key of all requests may spend in it. */
export type Limit = { walletId: string | null; currency: Currency; perTransfer?: string; perDay?: string }

/** The limits of the model test. */
export const keyLimits: readonly Limit[] = [
  { walletId: null, currency: 'JPY', perDay: '250' },
  { walletId: null, currency: 'ETH', perTransfer: '14' },
]

type RecordData = Record<string, unknown>
/** `new`: the request is carried out now. `data`: what a replay or a read answers. */
export type Outcome = { code: string; index?: number | undefined } | { code: '2000'; data: RecordData } | 'new'

/** What the service gives a new record. */
export type Made = { id: string; at: string }
export type MadeMovement = Made & { position: number; batchId: string | null }

/** Records are replaced, not changed, so that a copy of the books is cheap. */
export class Books {
  readonly wallets = new Map<string, Wallet>()
  /** By ID and by bizId, like holds. */
  readonly movements = new Map<string, Movement>()
  readonly holds = new Map<string, Hold>()
  readonly orders: string[] = []
  readonly flows = new Map<string, Flow[]>()
  readonly #open = new Map<string, Hold>()
  readonly #limits: readonly Limit[]
  /** By limit and day. */
  readonly #spent = new Map<string, bigint>()

  constructor(limits: readonly Limit[] = []) {
    this.#limits = limits
  }

  /** The answer to a request at a time, in milliseconds. */
  answer(request: Request, time: number): Outcome {
    if (isMalformed(request))
      return { code: 'S012', ...(request.kind === 'batch' && { index: malformedIndex(request) }) }
    switch (request.kind) {
      case 'batch':
        return this.#answerBatch(request, time)
      case 'hold':
        return this.#answerHold(request, time)
      case 'release':
        return this.#answerRelease(request, time)
      case 'wallet':
        return this.#answerWallet(request)
      case 'status':
        return this.#answerStatus(request)
      case 'read':
        return this.#answerRead(request, time)
      default:
        return this.#answerPosting(request, time)
    }
  }

  #answerPosting(posting: Posting, time: number): Outcome {
    if ((posting.kind === 'deposit' || posting.kind === 'withdrawal') && posting.currency === undefined) {
      const wallet = this.wallets.get(posting.walletId)
      if (!wallet) return { code: 'W001' }
      if (isMalformedAmount(posting.amount, wallet.currency)) return { code: 'S012' }
    }
    const repeated = this.#repeated(posting)
    if (repeated === 'different') return { code: 'T005' }
    if (repeated) return { code: '2000', data: this.recordOf(repeated) }
    const refusal = posting.kind === 'reversal' ? this.#refuseReversal(posting, time) : this.#refuse(posting, time)
    return refusal ? { code: refusal } : 'new'
  }

  /** All items or none, in order. */
  #answerBatch({ transfers }: Batch, time: number): Outcome {
    const repeated = transfers.map(item => this.#repeated(item))
    const different = repeated.indexOf('different')
    if (different >= 0) return { code: 'T005', index: different }
    const existing = repeated.flatMap(each => (each ? [each as Movement] : []))
    if (existing.length === transfers.length)
      return { code: '2000', data: { transfers: existing.map(each => this.recordOf(each)) } }
    if (existing.length > 0) return { code: 'T005', index: repeated.findIndex(Boolean) }
    const draft = this.#copy()
    for (const [index, item] of transfers.entries()) {
      const outcome = draft.#answerPosting(item, time)
      if (outcome !== 'new') return { code: outcome.code, index }
      draft.post(item, {
        id: item.bizId ?? `item ${index}`,
        at: new Date(time).toISOString(),
        position: 0,
        batchId: null,
      })
    }
    return 'new'
  }

  /** The movement that a request made when it was sent before; undefined if it is new. */
  #repeated(posting: Posting): Movement | 'different' | undefined {
    const existing = posting.bizId === undefined ? undefined : this.movements.get(posting.bizId)
    return existing && (this.isSame(existing, posting) ? existing : 'different')
  }

  /** Whether a request is for this movement of money. Amounts are compared as numbers, and references not at all. */
  isSame(existing: Movement, posting: Posting): boolean {
    if (unitsOf(existing.amount) !== unitsOf(posting.amount)) return false
    if (posting.currency !== undefined && existing.currency !== posting.currency) return false
    if (posting.kind === 'reversal')
      return existing.reverses !== null && existing.reverses === this.#movement(posting.reversesTransferId)?.transferId
    const { type, source, target } = sidesOf(posting)
    return (
      existing.reverses === null &&
      existing.type === type &&
      existing.source === source &&
      existing.target === target &&
      existing.holdId === (posting.holdId === undefined ? null : this.holds.get(posting.holdId)?.holdId)
    )
  }

  #refuse(posting: Transfer | Funding, time: number): string | null {
    const { source, target } = sidesOf(posting)
    if (source === target) return 'T004'
    const sides = [source, target].flatMap(side => (side === null ? [] : [this.wallets.get(side)]))
    if (sides.includes(undefined)) return 'W001'
    const wallets = sides as Wallet[]
    const hold = posting.holdId === undefined ? null : this.#hold(posting.holdId, time)
    if (hold === undefined) return 'H001'
    if (hold && hold.walletId !== source) return 'H004'
    if (wallets.some(({ status }) => status !== 'ACTIVE')) return 'W002'
    if (hold && hold.status !== 'OPEN') return 'H002'
    const { currency } = posting
    if (currency !== undefined && wallets.some(wallet => wallet.currency !== currency)) return 'T003'
    if (hold && hold.remaining < unitsOf(posting.amount)) return 'H003'
    const limits = source === null ? [] : this.#limitsOf(source, wallets[0]!.currency, posting.kind === 'transfer')
    if (this.#isOverAny(limits, posting.amount, time)) return 'T008'
    if (hold) return null
    return source !== null && this.available(source, time) < unitsOf(posting.amount) ? 'T002' : null
  }

  #refuseReversal({ reversesTransferId, amount, currency }: Reversal, time: number): string | null {
    const original = this.#movement(reversesTransferId)
    if (original?.type !== 'TRANSFER') return 'T001'
    if (original.reverses !== null) return 'T006'
    const [source, target] = [this.wallets.get(original.target!)!, this.wallets.get(original.source!)!]
    if (source.status !== 'ACTIVE' || target.status !== 'ACTIVE') return 'W002'
    if (original.currency !== currency) return 'T003'
    if (unitsOf(original.amount) - original.reversed < unitsOf(amount)) return 'T007'
    if (this.#isOverAny(this.#limitsOf(source.walletId, currency, true), amount, time)) return 'T008'
    return this.available(source.walletId, time) < unitsOf(amount) ? 'T002' : null
  }

  /** The limits on what leaves a wallet. Those of the key do not apply to withdrawals, which operators make. */
  #limitsOf(walletId: string, currency: Currency, isByKey: boolean): Limit[] {
    return this.#limits.filter(
      limit =>
        limit.currency === currency &&
        (limit.walletId === null ? isByKey : limit.walletId === walletId) &&
        // Without both, it was cleared.
        (limit.perTransfer ?? limit.perDay) !== undefined,
    )
  }

  #isOverAny(limits: readonly Limit[], amount: string, time: number): boolean {
    const units = unitsOf(amount)
    return limits.some(
      limit => isOver(limit.perTransfer, units) || isOver(limit.perDay, this.spentUnder(limit, time) + units),
    )
  }

  /** What counts towards a limit on the day of a time. */
  spentUnder(limit: Limit, time: number): bigint {
    return this.#spent.get(spentKey(limit, time)) ?? 0n
  }

  /** Counts an amount towards a limit. */
  spend(limit: Limit, units: bigint, time: number): void {
    this.#spent.set(spentKey(limit, time), this.spentUnder(limit, time) + units)
  }

  #answerHold({ walletId, amount, currency, expiresInSeconds, bizId }: HoldCreation, time: number): Outcome {
    const existing = this.#hold(bizId, time)
    if (existing) {
      const isSame =
        existing.walletId === walletId &&
        existing.currency === currency &&
        existing.expiresInSeconds === expiresInSeconds &&
        unitsOf(existing.amount) === unitsOf(amount)
      return isSame ? { code: '2000', data: holdRecordOf(existing) } : { code: 'T005' }
    }
    const wallet = this.wallets.get(walletId)
    if (!wallet) return { code: 'W001' }
    if (wallet.status !== 'ACTIVE') return { code: 'W002' }
    if (wallet.currency !== currency) return { code: 'T003' }
    // What captures the hold counts towards the day.
    const limits = this.#limitsOf(walletId, currency, true)
    if (limits.some(({ perTransfer }) => isOver(perTransfer, unitsOf(amount)))) return { code: 'T008' }
    return this.available(walletId, time) < unitsOf(amount) ? { code: 'T002' } : 'new'
  }

  #answerRelease({ holdId }: Release, time: number): Outcome {
    const hold = this.#hold(holdId, time)
    if (!hold) return { code: 'H001' }
    if (hold.status === 'RELEASED') return { code: '2000', data: holdRecordOf(hold) }
    return hold.status === 'OPEN' ? 'new' : { code: 'H002' }
  }

  #answerWallet({ bizId, name, currency }: WalletCreation): Outcome {
    const existing = bizId === undefined ? undefined : [...this.wallets.values()].find(each => each.bizId === bizId)
    if (!existing) return 'new'
    const isSame = existing.name === name && existing.currency === currency
    return isSame ? { code: '2000', data: walletRecordOf(existing) } : { code: 'T005' }
  }

  #answerStatus({ by, walletId, status }: StatusChange): Outcome {
    const wallet = this.wallets.get(walletId)
    if (!wallet) return { code: 'W001' }
    const isOperator = by === 'OPERATOR'
    // An operator may freeze over the API's own freeze.
    if (wallet.status === status && !(isOperator && wallet.frozenBy === 'WORKSPACE'))
      return { code: '2000', data: walletRecordOf(wallet) }
    if (wallet.status === 'CLOSED') return { code: isOperator ? 'NOT_ALLOWED' : 'W002' }
    if (!isOperator && wallet.frozenBy === 'OPERATOR') return { code: 'W004' }
    if (status === 'CLOSED' && wallet.balance !== 0n) return { code: isOperator ? 'WALLET_HOLDS_MONEY' : 'W003' }
    return 'new'
  }

  #answerRead(read: Read | PastRead, time: number): Outcome {
    const { what, id } = read
    if (what === 'order' || what === 'receipt') {
      const movement = this.#movement(id)
      if (movement?.type !== 'TRANSFER') return { code: 'T001' }
      return { code: '2000', data: what === 'order' ? this.recordOf(movement) : receiptOf(movement) }
    }
    if (what === 'hold') {
      const hold = this.#hold(id, time)
      return hold ? { code: '2000', data: holdRecordOf(hold) } : { code: 'H001' }
    }
    const wallet = this.wallets.get(id)
    if (!wallet) return { code: 'W001' }
    if (what === 'wallet') return { code: '2000', data: walletRecordOf(wallet) }
    if (what === 'balanceAt') return { code: '2000', data: this.#balanceAt(wallet, read.at) }
    if (what === 'statement') return { code: '2000', data: this.#statement(wallet, read.from, read.to) }
    const { walletId, currency, balance, sequence } = wallet
    const available = this.available(walletId, time)
    const [all, held, free] = [balance, balance - available, available].map(units => textOf(units, currency))
    return { code: '2000', data: { walletId, currency, balance: all, held, available: free, sequence } }
  }

  #balanceAt({ walletId, currency }: Wallet, at: string): RecordData {
    const last = this.#flowsBetween(walletId, '', at).at(-1)
    return {
      walletId,
      currency,
      at,
      balance: last?.balanceAfter ?? textOf(0n, currency),
      sequence: last?.sequence ?? 0,
    }
  }

  #statement(wallet: Wallet, from: string, to: string): RecordData {
    const { walletId, currency } = wallet
    const flows = this.#flowsBetween(walletId, from, to)
    const total = (direction: Flow['direction']) =>
      flows.reduce((sum, flow) => (flow.direction === direction ? sum + unitsOf(flow.amount) : sum), 0n)
    const [opening, closing] = [from, to].map(at => unitsOf(this.#balanceAt(wallet, at).balance as string)) as [
      bigint,
      bigint,
    ]
    if (opening + total('IN') - total('OUT') !== closing) throw new Error(`the model is wrong about ${walletId}`)
    return {
      walletId,
      currency,
      from,
      to,
      opening: textOf(opening, currency),
      closing: textOf(closing, currency),
      totalIn: textOf(total('IN'), currency),
      totalOut: textOf(total('OUT'), currency),
      flowCount: flows.length,
      firstSequence: flows[0]?.sequence ?? null,
      lastSequence: flows.at(-1)?.sequence ?? null,
    }
  }

  #flowsBetween(walletId: string, from: string, to: string): Flow[] {
    return (this.flows.get(walletId) ?? []).filter(({ createdAt }) => createdAt >= from && createdAt < to)
  }

  /** Carries out what `answer` calls new. */
  post(posting: Posting, { id, at, position, batchId }: MadeMovement): Movement {
    const original = posting.kind === 'reversal' ? this.#movement(posting.reversesTransferId)! : null
    const { type, source, target } =
      posting.kind === 'reversal'
        ? { type: 'TRANSFER' as const, source: original!.target, target: original!.source }
        : sidesOf(posting)
    const draw = posting.kind !== 'reversal' && posting.holdId !== undefined ? posting : null
    const hold = draw && this.#draw(draw, at)
    const { amount } = posting
    const balances: Movement['balances'] = {}
    if (source !== null) balances.source = this.#move(source, -unitsOf(amount))
    if (target !== null) balances.target = this.#move(target, unitsOf(amount))
    const movement: Movement = {
      transferId: id,
      bizId: posting.bizId ?? id,
      type,
      source,
      target,
      amount,
      currency: this.wallets.get((source ?? target)!)!.currency,
      reference: ('reference' in posting && posting.reference) || null,
      holdId: hold?.holdId ?? null,
      holdRemaining: hold?.remaining ?? null,
      batchId,
      reverses: original?.transferId ?? null,
      reversed: 0n,
      balances,
      position,
      createdAt: at,
    }
    this.#keep(movement)
    if (original) this.#keep({ ...original, reversed: original.reversed + unitsOf(amount) })
    if (type === 'TRANSFER') this.orders.push(id)
    const limits = source === null ? [] : this.#limitsOf(source, movement.currency, type === 'TRANSFER')
    for (const limit of limits) this.spend(limit, unitsOf(amount), Date.parse(at))
    for (const [side, flow] of Object.entries(balances)) this.#addFlow(movement, side, flow)
    return movement
  }

  #keep(movement: Movement): void {
    for (const name of [movement.transferId, movement.bizId]) this.movements.set(name, movement)
  }

  #draw({ holdId, holdRemainder, amount }: Transfer | Funding, at: string): Hold {
    const hold = this.holds.get(holdId!)!
    const rest = holdRemainder === 'KEEP' ? hold.remaining - unitsOf(amount) : 0n
    const status = rest === 0n ? 'CAPTURED' : 'OPEN'
    return this.#keepHold({
      ...hold,
      status,
      captured: hold.captured + unitsOf(amount),
      remaining: rest,
      updatedAt: at,
    })
  }

  #move(walletId: string, units: bigint): Movement['balances'][string] {
    const before = this.wallets.get(walletId)!
    const wallet = { ...before, balance: before.balance + units, sequence: before.sequence + 1 }
    this.wallets.set(walletId, wallet)
    return { walletId, sequence: wallet.sequence, balanceAfter: textOf(wallet.balance, wallet.currency) }
  }

  #addFlow(movement: Movement, side: string, { walletId, sequence, balanceAfter }: Movement['balances'][string]): void {
    const { type, amount, currency, transferId, source, target, createdAt } = movement
    const flow: Flow = {
      walletId,
      sequence,
      direction: side === 'source' ? 'OUT' : 'IN',
      type,
      amount,
      balanceAfter,
      currency,
      transferId,
      counterpartyWalletId: side === 'source' ? target : source,
      createdAt,
    }
    const flows = this.flows.get(walletId)
    if (flows) flows.push(flow)
    else this.flows.set(walletId, [flow])
  }

  hold(creation: HoldCreation, { id, at }: Made): Hold {
    const { walletId, currency, amount, expiresInSeconds, bizId, reference = null } = creation
    return this.#keepHold({
      holdId: id,
      bizId,
      walletId,
      currency,
      amount,
      captured: 0n,
      remaining: unitsOf(amount),
      status: 'OPEN',
      expiresInSeconds,
      expiresAt: new Date(Date.parse(at) + 1000 * expiresInSeconds).toISOString(),
      reference,
      createdAt: at,
      updatedAt: at,
    })
  }

  /** Releases an open hold, or expires one. */
  end(hold: Hold, status: 'RELEASED' | 'EXPIRED', at: string): Hold {
    return this.#keepHold({ ...hold, status, remaining: 0n, updatedAt: at })
  }

  #keepHold(hold: Hold): Hold {
    for (const name of [hold.holdId, hold.bizId]) this.holds.set(name, hold)
    if (hold.status === 'OPEN') this.#open.set(hold.holdId, hold)
    else this.#open.delete(hold.holdId)
    return hold
  }

  createWallet(
    { name, currency, bizId = null }: Omit<WalletCreation, 'bizId'> & { bizId?: string | null },
    made: Made,
  ) {
    const { id: walletId, at: createdAt } = made
    const wallet: Wallet = {
      walletId,
      bizId,
      name,
      currency,
      status: 'ACTIVE',
      frozenBy: null,
      balance: 0n,
      sequence: 0,
      createdAt,
    }
    this.wallets.set(walletId, wallet)
    return wallet
  }

  changeStatus({ by, walletId, status }: StatusChange): Wallet {
    const wallet = { ...this.wallets.get(walletId)!, status, frozenBy: status === 'FROZEN' ? by : null }
    this.wallets.set(walletId, wallet)
    return wallet
  }

  /** What open holds leave of a balance. From `expiresAt` on, a hold reserves nothing. */
  available(walletId: string, time: number): bigint {
    let { balance } = this.wallets.get(walletId)!
    for (const hold of this.#open.values())
      if (hold.walletId === walletId && Date.parse(hold.expiresAt) > time) balance -= hold.remaining
    return balance
  }

  /** The times after `from`, up to `to`, at which open holds expire. */
  expiries(from: number, to: number): number[] {
    return [...this.#open.values()]
      .map(({ expiresAt }) => Date.parse(expiresAt))
      .filter(time => time > from && time <= to)
  }

  #movement(name: string): Movement | undefined {
    return this.movements.get(name)
  }

  /** A hold as it is at a time. */
  #hold(name: string, time: number): Hold | undefined {
    const hold = this.holds.get(name)
    if (hold?.status !== 'OPEN' || Date.parse(hold.expiresAt) > time) return hold
    return { ...hold, status: 'EXPIRED', remaining: 0n, updatedAt: hold.expiresAt }
  }

  #copy(): Books {
    const copy = new Books(this.#limits)
    for (const [id, wallet] of this.wallets) copy.wallets.set(id, wallet)
    for (const [name, movement] of this.movements) copy.movements.set(name, movement)
    for (const [name, hold] of this.holds) copy.holds.set(name, hold)
    for (const [id, hold] of this.#open) copy.#open.set(id, hold)
    for (const [key, units] of this.#spent) copy.#spent.set(key, units)
    return copy
  }

  /** A transfer order, or the receipt of a deposit or withdrawal. */
  recordOf(movement: Movement): RecordData {
    const { transferId, bizId, type, amount, currency, source, target, holdId, createdAt } = movement
    if (type !== 'TRANSFER')
      return { transferId, bizId, walletId: source ?? target, type, amount, currency, holdId, createdAt }
    const { reference, batchId, reverses, reversed } = movement
    return {
      transferId,
      bizId,
      status: 'COMPLETED',
      amount,
      currency,
      sourceWalletId: source,
      targetWalletId: target,
      remark: null,
      reference,
      holdId,
      batchId,
      reversesTransferId: reverses,
      createdAt,
      updatedAt: createdAt,
      completedAt: createdAt,
      reversedAmount: textOf(reversed, currency),
    }
  }
}

/** Days are of UTC. */
function spentKey({ walletId, currency }: Limit, time: number): string {
  return `${walletId} ${currency} ${new Date(time).toISOString().slice(0, 10)}`
}

function isOver(bound: string | undefined, units: bigint): boolean {
  return bound !== undefined && units > unitsOf(bound)
}

export function holdRecordOf(hold: Hold): RecordData {
  const { captured, remaining, expiresInSeconds: _, ...record } = hold
  const [capturedAmount, remainingAmount] = [captured, remaining].map(units => textOf(units, hold.currency))
  return { ...record, capturedAmount, remainingAmount, remark: null }
}

/** The claims of a receipt, without its workspace and without MACs. */
function receiptOf(movement: Movement): RecordData {
  const { transferId, bizId, amount, currency, source, target, createdAt, position, reverses, balances } = movement
  return {
    transferId,
    bizId,
    amount,
    currency,
    sourceWalletId: source,
    targetWalletId: target,
    completedAt: createdAt,
    position,
    reversesTransferId: reverses,
    source: { sequence: balances.source!.sequence },
    target: { sequence: balances.target!.sequence },
  }
}

/** Without `updatedAt`. */
function walletRecordOf({ frozenBy: _, sequence: __, balance, ...wallet }: Wallet): RecordData {
  return { ...wallet, balance: textOf(balance, wallet.currency) }
}

function sidesOf(posting: Transfer | Funding): Pick<Movement, 'type' | 'source' | 'target'> {
  if (posting.kind === 'transfer')
    return { type: 'TRANSFER', source: posting.sourceWalletId, target: posting.targetWalletId }
  return posting.kind === 'deposit'
    ? { type: 'DEPOSIT', source: null, target: posting.walletId }
    : { type: 'WITHDRAWAL', source: posting.walletId, target: null }
}

export type { Hold, Movement }
