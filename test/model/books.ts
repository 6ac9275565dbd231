/** The contract as a model: the simplest books that keep it, in exact whole numbers. */
import { type Change, type Currency, currencies, type Funding, type Transfer, type WalletRef } from './operations.ts'

/** All amounts in units of 10^-18, whatever the currency. */
const scale = 18

export function unitsOf(amount: string): bigint {
  const [whole = '', fraction = ''] = amount.split('.')
  return BigInt(whole + fraction.padEnd(scale, '0'))
}

/** With exactly the currency's decimals, as balances are shown. */
export function textOf(units: bigint, currency: Currency): string {
  const decimals = currencies[currency]
  const digits = (units / 10n ** BigInt(scale - decimals)).toString().padStart(decimals + 1, '0')
  return decimals === 0 ? digits : `${digits.slice(0, -decimals)}.${digits.slice(-decimals)}`
}

export type Status = 'ACTIVE' | 'FROZEN' | 'CLOSED'
export type Flow = { direction: 'IN' | 'OUT'; type: string; amount: string; balanceAfter: string; entry: Entry }
export type Wallet = { currency: Currency; status: Status; balance: bigint; flows: Flow[] }
/** Money that moved. `at` counts entries. */
export type Entry = { at: number; asked: Transfer | Funding }

/** A code of the contract; 2000 with the entry that was made, now or earlier. */
export type Verdict = { code: string; entry?: Entry }

export const statusOf = { freeze: 'FROZEN', unfreeze: 'ACTIVE', close: 'CLOSED' } as const

export class Books {
  readonly wallets: Wallet[] = []
  readonly entries: Entry[] = []
  readonly #named = new Map<string, Entry>()

  open(currency: string): void {
    this.wallets.push({ currency: currency as Currency, status: 'ACTIVE', balance: 0n, flows: [] })
  }

  transfer(asked: Transfer): Verdict {
    if (isMalformed(asked.amount, asked.currency as Currency)) return { code: 'S012' }
    const earlier = this.#earlier(asked)
    if (earlier) return earlier
    if (asked.source === asked.target) return { code: 'T004' }
    const [source, target] = [this.#wallet(asked.source), this.#wallet(asked.target)]
    if (!source || !target) return { code: 'W001' }
    if (source.status !== 'ACTIVE' || target.status !== 'ACTIVE') return { code: 'W002' }
    if (source.currency !== asked.currency || target.currency !== asked.currency) return { code: 'T003' }
    if (source.balance < unitsOf(asked.amount)) return { code: 'T002' }
    return { code: '2000', entry: this.#enter(asked, source, target) }
  }

  fund(asked: Funding): Verdict {
    const wallet = this.#wallet(asked.wallet)
    if (!/^(0|[1-9]\d*)(\.\d+)?$/.test(asked.amount)) return { code: 'S012' }
    if (asked.amount.replace('.', '').length > 38 || !/[1-9]/.test(asked.amount)) return { code: 'S012' }
    if (!wallet) return { code: 'W001' }
    if (isMalformed(asked.amount, wallet.currency)) return { code: 'S012' }
    const earlier = this.#earlier(asked)
    if (earlier) return earlier
    if (wallet.status !== 'ACTIVE') return { code: 'W002' }
    if (asked.kind === 'withdraw' && wallet.balance < unitsOf(asked.amount)) return { code: 'T002' }
    const [source, target] = asked.kind === 'deposit' ? [undefined, wallet] : [wallet, undefined]
    return { code: '2000', entry: this.#enter(asked, source, target) }
  }

  change({ kind, wallet: at }: Change): Verdict {
    const wallet = this.wallets[at]!
    if (wallet.status === 'CLOSED' && kind !== 'close') return { code: 'NOT_ALLOWED' }
    if (kind === 'close' && wallet.balance !== 0n) return { code: 'WALLET_HOLDS_MONEY' }
    wallet.status = statusOf[kind]
    return { code: '2000' }
  }

  #wallet(ref: WalletRef): Wallet | undefined {
    return typeof ref === 'number' ? this.wallets[ref] : undefined
  }

  #earlier(asked: Transfer | Funding): Verdict | undefined {
    const entry = asked.bizId === undefined ? undefined : this.#named.get(asked.bizId)
    if (!entry) return undefined
    return isSame(entry.asked, asked) ? { code: '2000', entry } : { code: 'T005' }
  }

  #enter(asked: Transfer | Funding, source: Wallet | undefined, target: Wallet | undefined): Entry {
    const entry: Entry = { at: this.entries.length, asked }
    this.entries.push(entry)
    if (asked.bizId !== undefined) this.#named.set(asked.bizId, entry)
    if (source) this.#move(source, 'OUT', entry)
    if (target) this.#move(target, 'IN', entry)
    return entry
  }

  #move(wallet: Wallet, direction: Flow['direction'], entry: Entry): void {
    const { amount, kind } = entry.asked
    wallet.balance += direction === 'IN' ? unitsOf(amount) : -unitsOf(amount)
    const type = { transfer: 'TRANSFER', deposit: 'DEPOSIT', withdraw: 'WITHDRAWAL' }[kind]
    wallet.flows.push({ direction, type, amount, balanceAfter: textOf(wallet.balance, wallet.currency), entry })
  }
}

/** Whether one asks for what the other did: the amount as a number, the rest as it stands. */
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
