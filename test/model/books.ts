/** The contract as a model: simple books with exact integers. */
import { type Change, type Currency, currencies, type Funding, type Transfer, type WalletRef } from './operations.ts'

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

export type Status = 'ACTIVE' | 'FROZEN' | 'CLOSED'
export type Flow = { direction: 'IN' | 'OUT'; type: string; amount: string; balanceAfter: string; entry: Entry }
export type Wallet = { currency: Currency; status: Status; balance: bigint; flows: Flow[] }
/** A request that moved money. `at` is its position among all of them. */
export type Entry = { at: number; request: Transfer | Funding }

/** The expected code; for 2000, with the entry that was made now or, for a replay, earlier. */
export type Outcome = { code: string; entry?: Entry }

export const statusOf = { freeze: 'FROZEN', unfreeze: 'ACTIVE', close: 'CLOSED' } as const

export class Books {
  readonly wallets: Wallet[] = []
  readonly entries: Entry[] = []
  readonly #byBizId = new Map<string, Entry>()

  open(currency: string): void {
    this.wallets.push({ currency: currency as Currency, status: 'ACTIVE', balance: 0n, flows: [] })
  }

  transfer(request: Transfer): Outcome {
    if (isMalformed(request.amount, request.currency as Currency)) return { code: 'S012' }
    const replay = this.#replay(request)
    if (replay) return replay
    if (request.source === request.target) return { code: 'T004' }
    const [source, target] = [this.#wallet(request.source), this.#wallet(request.target)]
    if (!source || !target) return { code: 'W001' }
    if (source.status !== 'ACTIVE' || target.status !== 'ACTIVE') return { code: 'W002' }
    if (source.currency !== request.currency || target.currency !== request.currency) return { code: 'T003' }
    if (source.balance < unitsOf(request.amount)) return { code: 'T002' }
    return { code: '2000', entry: this.#enter(request, source, target) }
  }

  fund(request: Funding): Outcome {
    const wallet = this.#wallet(request.wallet)
    if (!/^(0|[1-9]\d*)(\.\d+)?$/.test(request.amount)) return { code: 'S012' }
    if (request.amount.replace('.', '').length > 38 || !/[1-9]/.test(request.amount)) return { code: 'S012' }
    if (!wallet) return { code: 'W001' }
    if (isMalformed(request.amount, wallet.currency)) return { code: 'S012' }
    const replay = this.#replay(request)
    if (replay) return replay
    if (wallet.status !== 'ACTIVE') return { code: 'W002' }
    if (request.kind === 'withdraw' && wallet.balance < unitsOf(request.amount)) return { code: 'T002' }
    const [source, target] = request.kind === 'deposit' ? [undefined, wallet] : [wallet, undefined]
    return { code: '2000', entry: this.#enter(request, source, target) }
  }

  change({ kind, wallet: at }: Change): Outcome {
    const wallet = this.wallets[at]!
    if (wallet.status === 'CLOSED' && kind !== 'close') return { code: 'NOT_ALLOWED' }
    if (kind === 'close' && wallet.balance !== 0n) return { code: 'WALLET_HOLDS_MONEY' }
    wallet.status = statusOf[kind]
    return { code: '2000' }
  }

  #wallet(ref: WalletRef): Wallet | undefined {
    return typeof ref === 'number' ? this.wallets[ref] : undefined
  }

  #replay(request: Transfer | Funding): Outcome | undefined {
    const entry = request.bizId === undefined ? undefined : this.#byBizId.get(request.bizId)
    if (!entry) return undefined
    return isSame(entry.request, request) ? { code: '2000', entry } : { code: 'T005' }
  }

  #enter(request: Transfer | Funding, source: Wallet | undefined, target: Wallet | undefined): Entry {
    const entry: Entry = { at: this.entries.length, request }
    this.entries.push(entry)
    if (request.bizId !== undefined) this.#byBizId.set(request.bizId, entry)
    if (source) this.#move(source, 'OUT', entry)
    if (target) this.#move(target, 'IN', entry)
    return entry
  }

  #move(wallet: Wallet, direction: Flow['direction'], entry: Entry): void {
    const { amount, kind } = entry.request
    wallet.balance += direction === 'IN' ? unitsOf(amount) : -unitsOf(amount)
    const type = { transfer: 'TRANSFER', deposit: 'DEPOSIT', withdraw: 'WITHDRAWAL' }[kind]
    wallet.flows.push({ direction, type, amount, balanceAfter: textOf(wallet.balance, wallet.currency), entry })
  }
}

/** Whether two requests are for the same movement of money. Amounts are compared as numbers. */
export function isSame(a: Transfer | Funding, b: Transfer | Funding): boolean {
  if (unitsOf(a.amount) !== unitsOf(b.amount) || a.kind !== b.kind) return false
  if (a.kind === 'transfer' && b.kind === 'transfer')
    return a.source === b.source && a.target === b.target && a.currency === b.currency
  return a.kind !== 'transfer' && b.kind !== 'transfer' && a.wallet === b.wallet
}

function isMalformed(amount: string, currency: Currency): boolean {
  if (!/^(0|[1-9]\d*)(\.\d+)?$/.test(amount) || !/[1-9]/.test(amount)) return true
  const [whole = '', fraction = ''] = amount.split('.')
  return whole.length + fraction.length > 38 || fraction.length > currencies[currency]
}
