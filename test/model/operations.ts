/**
 * Random requests of the model tests. They depend only on the seed, not on answers: wallets are named by `Wallet 0`,
 * `Wallet 1` …, holds and transfers by their bizId.
 */
import type { Random } from '../../cli/processes/random.ts'
import {
  type Batch,
  type Changer,
  type Currency,
  currencies,
  type Funding,
  type HoldCreation,
  type Item,
  longestHold,
  type PastRead,
  type Read,
  type Release,
  type Request,
  type Status,
  type StatusChange,
  type Transfer,
  type WalletCreation,
} from './requests.ts'

/** What may stand for a wallet that the workspace does not have. */
export const wrongWallets = ['absent', 'malformed', 'external', 'foreign'] as const

/** The end of the name of a wallet in a conflicting request. Either request may create the wallet. */
export const otherName = ', renamed'

/** Requests that a client sends at the same time. It waits for all answers before its next step. */
export type Step = Request[]

type Named = Item | Batch | Funding | HoldCreation | Release | WalletCreation

const codes = Object.keys(currencies) as Currency[]
/** How many holds and transfers are recent, so that most draws, releases and reversals are of records that still allow them. */
const recent = 6

/** Generates requests about a growing set of wallets. */
export class OperationGenerator {
  readonly #random: Random
  readonly #wallets: Currency[] = []
  /** Earlier requests with a bizId, to be repeated. */
  readonly #repeatable: Named[] = []
  readonly #holds: HoldCreation[] = []
  readonly #transfers: Item[] = []
  readonly #mix: [weight: number, make: () => Request][]
  #names = 0

  constructor(random: Random) {
    this.#random = random
    this.#mix = [
      [2, () => this.#newWallet(random.pick(codes))],
      [8, () => this.#funding('deposit')],
      [6, () => this.#funding('withdrawal')],
      [10, () => this.#status()],
      [12, () => this.#repeated()],
      [5, () => this.#conflicting()],
      [10, () => this.#hold()],
      [8, () => this.#keep(this.#drawn())],
      [4, () => this.#release()],
      [8, () => this.#keep(this.#reversal())],
      [9, () => this.#batch()],
      [10, () => this.#read()],
      [22, () => this.#transfer()],
    ]
  }

  /** Creates two funded wallets of each currency. */
  opening(): Step[] {
    return codes.flatMap(currency =>
      Array.from({ length: 2 }, (): Step[] => {
        const wallet = this.#newWallet(currency)
        return [[wallet], [{ kind: 'deposit', walletId: wallet.name, amount: '120', bizId: this.#name() }]]
      }).flat(),
    )
  }

  step(): Step {
    const request = this.request()
    const roll = this.#random.int(100)
    // Concurrent duplicates, some with a conflicting request between them.
    if (isNamed(request) && roll < 12) return Array.from({ length: 2 + this.#random.int(3) }, () => request)
    if (isNamed(request) && roll < 20) return [request, this.#conflictWith(request), request]
    if (roll < 40) return [request, this.request()]
    return [request]
  }

  request(): Request {
    let roll = this.#random.int(this.#mix.reduce((sum, [weight]) => sum + weight, 0))
    for (const [weight, make] of this.#mix) {
      if (roll < weight) return make()
      roll -= weight
    }
    throw new Error('the weights have no request for this roll')
  }

  /** A read of past balances, at or next to some of these times, in milliseconds. */
  pastRead(times: readonly number[]): PastRead {
    const id = this.#random.chance(0.95) ? this.#wallet() : this.#anyWallet()
    const time = () => new Date(this.#random.pick(times) + this.#random.int(3) - 1).toISOString()
    const [first, second] = [time(), time()]
    if (this.#random.chance(0.3)) return { kind: 'read', what: 'balanceAt', id, at: first }
    const isForward = this.#random.chance(0.95) === first < second
    const [from, to] = isForward ? [first, second] : [second, first]
    return { kind: 'read', what: 'statement', id, from, to }
  }

  #newWallet(currency: Currency): WalletCreation {
    const name = `Wallet ${this.#wallets.push(currency) - 1}`
    if (this.#random.chance(0.3)) return { kind: 'wallet', by: 'OPERATOR', name, currency }
    return this.#keep({ kind: 'wallet', by: 'WORKSPACE', name, currency, bizId: this.#name() })
  }

  #transfer(): Request {
    const { bizId: _, ...unnamed } = this.#item(12)
    return this.#random.chance(0.4) ? unnamed : this.#keep({ ...unnamed, bizId: this.#name() })
  }

  /** A transfer with a bizId. */
  #item(middle: number): Transfer {
    const source = this.#wallet()
    const currency = this.#random.chance(0.97) ? this.#currencyOf(source) : this.#random.pick(codes)
    return {
      kind: 'transfer',
      sourceWalletId: this.#random.chance(0.96) ? source : this.#anyWallet(),
      targetWalletId: this.#random.chance(0.93) ? this.#otherWallet(source) : this.#anyWallet(),
      amount: this.#amount(currency, middle),
      currency,
      bizId: this.#name(),
      ...this.#reference(),
    }
  }

  #funding(kind: Funding['kind']): Request {
    const holder = this.#random.chance(0.3) && kind === 'withdrawal' ? this.#recent(this.#holds) : undefined
    const wallet = holder?.walletId ?? this.#wallet()
    return this.#keep({
      kind,
      walletId: this.#random.chance(0.97) ? wallet : this.#anyWallet(),
      amount: holder ? this.#partOf(holder) : this.#amount(this.#currencyOf(wallet), kind === 'deposit' ? 14 : 8),
      bizId: this.#name(),
      ...(holder && this.#draw(holder)),
    })
  }

  #hold(): Request {
    const walletId = this.#wallet()
    const currency = this.#random.chance(0.97) ? this.#currencyOf(walletId) : this.#random.pick(codes)
    const hold: HoldCreation = {
      kind: 'hold',
      walletId: this.#random.chance(0.96) ? walletId : this.#anyWallet(),
      amount: this.#amount(currency, 9),
      currency,
      expiresInSeconds: this.#random.chance(0.02) ? 0 : this.#random.pick([1, 1, 2, 3, 3600, longestHold]),
      bizId: this.#name(),
      ...this.#reference(),
    }
    this.#holds.push(hold)
    return this.#keep(hold)
  }

  /** A transfer that draws on a hold. */
  #drawn(): Transfer {
    const hold = this.#recent(this.#holds)
    if (!hold) return this.#item(12)
    return {
      ...this.#item(12),
      sourceWalletId: this.#random.chance(0.94) ? hold.walletId : this.#wallet(),
      targetWalletId: this.#otherWallet(hold.walletId),
      amount: this.#partOf(hold),
      currency: hold.currency,
      ...this.#draw(hold),
    }
  }

  #draw({ bizId }: HoldCreation): Pick<Transfer, 'holdId' | 'holdRemainder'> {
    const roll = this.#random.int(100)
    if (roll < 2) return { holdRemainder: 'KEEP' }
    const holdId = roll < 5 ? 'absent' : bizId
    return this.#random.chance(0.6) ? { holdId, holdRemainder: 'KEEP' } : { holdId }
  }

  #release(): Request {
    const hold = this.#recent(this.#holds)
    return this.#keep({ kind: 'release', holdId: hold && this.#random.chance(0.95) ? hold.bizId : 'absent' })
  }

  #reversal(originals: readonly Item[] = this.#transfers): Item {
    const original = this.#recent(originals)
    if (!original) return this.#item(12)
    return {
      kind: 'reversal',
      reversesTransferId: this.#random.chance(0.97) ? original.bizId! : 'absent',
      amount: this.#partOf(original),
      currency: this.#random.chance(0.97) ? original.currency : this.#random.pick(codes),
      bizId: this.#name(),
      ...this.#reference(),
    }
  }

  #batch(): Request {
    const transfers: Item[] = []
    for (let count = 1 + this.#random.int(4); count > 0; count--) {
      const roll = this.#random.int(100)
      if (roll < 12) transfers.push(this.#reversal())
      else if (roll < 30) transfers.push(this.#reversal(transfers))
      else if (roll < 45) transfers.push(this.#drawn())
      else transfers.push(this.#item(4))
    }
    if (this.#random.chance(0.03)) transfers.push(this.#random.pick(transfers))
    if (this.#random.chance(0.02)) return { kind: 'batch', transfers: [] }
    this.#transfers.push(...transfers)
    return this.#keep({ kind: 'batch', transfers })
  }

  #status(): StatusChange {
    const roll = this.#random.int(100)
    const status: Status = roll < 12 ? 'FROZEN' : roll < 94 ? 'ACTIVE' : 'CLOSED'
    // Mostly operators unfreeze wallets, because only they can unfreeze what they froze.
    const by: Changer = this.#random.chance(status === 'ACTIVE' ? 0.8 : 0.4) ? 'OPERATOR' : 'WORKSPACE'
    const walletId = this.#random.chance(0.97) || by === 'OPERATOR' ? this.#wallet() : this.#anyWallet()
    return { kind: 'status', by, walletId, status }
  }

  #read(): Read {
    const what = this.#random.pick(['wallet', 'balance', 'balance', 'order', 'hold', 'hold', 'receipt'] as const)
    if (what === 'order' || what === 'receipt')
      return { kind: 'read', what, id: this.#recent(this.#transfers)?.bizId ?? 'absent' }
    if (what === 'hold') return { kind: 'read', what, id: this.#recent(this.#holds)?.bizId ?? 'absent' }
    return { kind: 'read', what, id: this.#random.chance(0.97) ? this.#wallet() : this.#anyWallet() }
  }

  #repeated(): Request {
    return this.#repeatable.length > 0 ? this.#random.pick(this.#repeatable) : this.#transfer()
  }

  #conflicting(): Request {
    return this.#repeatable.length > 0 ? this.#conflictWith(this.#random.pick(this.#repeatable)) : this.#transfer()
  }

  /** The same bizId with another request, or with one that is the same although it is written differently. */
  #conflictWith(request: Named): Request {
    if (request.kind === 'release') return request
    if (request.kind === 'wallet') return { ...request, name: `${request.name}${otherName}` }
    if (request.kind === 'batch') return this.#otherBatch(request)
    const roll = this.#random.int(4)
    if (roll === 0 && request.kind === 'transfer')
      return { ...request, sourceWalletId: request.targetWalletId, targetWalletId: request.sourceWalletId }
    if (roll === 0 && request.kind === 'hold') return { ...request, expiresInSeconds: request.expiresInSeconds + 1 }
    if (roll === 1)
      return { ...request, amount: request.amount.includes('.') ? `${request.amount}0` : `${request.amount}.0` }
    if (roll === 2 && request.kind === 'deposit') return { ...request, kind: 'withdrawal' }
    if (roll === 2 && request.kind === 'transfer' && request.holdId !== undefined) {
      const { holdId: _, holdRemainder: __, ...rest } = request
      return rest
    }
    return { ...request, amount: `1${request.amount}` }
  }

  #otherBatch({ transfers }: Batch): Request {
    if (transfers.length === 0) return { kind: 'batch', transfers }
    const roll = this.#random.int(4)
    // The first two are replays of the batch and of one item, if it was made.
    if (roll === 0) return { kind: 'batch', transfers: transfers.toReversed() }
    if (roll === 1) return this.#random.pick(transfers)
    if (roll === 2) return { kind: 'batch', transfers: [this.#item(4), ...transfers] }
    return { kind: 'batch', transfers: transfers.map(item => ({ ...item, amount: `1${item.amount}` })) }
  }

  #keep<Kept extends Named>(request: Kept): Kept {
    if (isNamed(request)) this.#repeatable.push(request)
    if ((request.kind === 'transfer' || request.kind === 'reversal') && request.bizId) this.#transfers.push(request)
    return request
  }

  #name(): string {
    return `biz-${this.#names++}`
  }

  #reference(): { reference?: string } {
    return this.#random.chance(0.3) ? { reference: `invoice-${this.#random.int(5)}` } : {}
  }

  #recent<Each>(all: readonly Each[]): Each | undefined {
    if (all.length === 0) return undefined
    return this.#random.pick(this.#random.chance(0.85) ? all.slice(-recent) : all)
  }

  #wallet(): string {
    return `Wallet ${this.#random.int(this.#wallets.length)}`
  }

  /** Another wallet of the same currency. */
  #otherWallet(wallet: string): string {
    const own = this.#currencyOf(wallet)
    const alike = this.#wallets.flatMap((currency, at) => (currency === own ? [`Wallet ${at}`] : []))
    return this.#random.pick(alike.filter(each => each !== wallet))
  }

  #currencyOf(wallet: string): Currency {
    return this.#wallets[Number(wallet.replace('Wallet ', ''))] ?? 'USD'
  }

  #anyWallet(): string {
    return this.#random.chance(0.5) ? this.#wallet() : this.#random.pick(wrongWallets)
  }

  /** All of an amount, or about half of it, or sometimes more. */
  #partOf({ amount, currency }: { amount: string; currency: Currency }): string {
    const whole = Number(amount)
    if (this.#random.chance(0.06)) return `1${amount}`
    if (this.#random.chance(0.3) || !(whole >= 2)) return amount
    return this.#amount(currency, Math.ceil(whole / 4))
  }

  /** An amount around `middle`, in any valid notation, or sometimes an invalid one. */
  #amount(currency: Currency, middle: number): string {
    const decimals = currencies[currency]
    if (this.#random.chance(0.03))
      return this.#random.pick(['0', '-1', '01', '1e3', `0.${'0'.repeat(decimals)}1`, '9'.repeat(39), '1.'])
    const whole = String(this.#random.int(2 * middle))
    const places = this.#random.chance(0.3) ? 0 : this.#random.int(decimals + 1)
    const fraction = Array.from({ length: places }, () => this.#random.int(10)).join('')
    const amount = fraction === '' ? whole : `${whole}.${fraction}`
    return /[1-9]/.test(amount) ? amount : '1'
  }
}

/** Whether sending a request again is a replay. */
function isNamed(request: Request): request is Named {
  return request.kind === 'batch' || request.kind === 'release' || ('bizId' in request && request.bizId !== undefined)
}
