/** What clients of the model tests ask for. Drawn from a seed alone: no answer changes what is asked next. */
import type { Random } from '../../tools/services/random.ts'

/** A wallet by its place in the plan, or one that no transfer of the workspace may name. */
export type WalletRef = number | 'absent' | 'malformed' | 'external' | 'foreign'

export type Operation =
  | { kind: 'open'; wallet: number; currency: string }
  | {
      kind: 'transfer'
      source: WalletRef
      target: WalletRef
      amount: string
      currency: string
      bizId?: string
    }
  | { kind: 'deposit' | 'withdraw'; wallet: WalletRef; amount: string; bizId?: string }
  | { kind: 'freeze' | 'unfreeze' | 'close'; wallet: number }

export type Transfer = Extract<Operation, { kind: 'transfer' }>
export type Funding = Extract<Operation, { kind: 'deposit' | 'withdraw' }>
export type Change = Extract<Operation, { kind: 'freeze' | 'unfreeze' | 'close' }>

/** Operations that a client sends at once; it waits for all answers before its next step. */
export type Step = Operation[]

/** With their decimals: the dollar, one without decimals, and one at the wei. */
export const currencies = { USD: 2, JPY: 0, ETH: 18 } as const
export type Currency = keyof typeof currencies
const codes = Object.keys(currencies) as Currency[]

/** Draws operations on a growing set of wallets. */
export class Draw {
  readonly #random: Random
  readonly #wallets: Currency[] = []
  /** What was drawn with a bizId, to be asked for again. */
  readonly #named: (Transfer | Funding)[] = []
  #names = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** The first wallets, two of each currency, with money in them. */
  opening(): Step[] {
    return codes.flatMap(currency =>
      Array.from({ length: 2 }, (): Step[] => {
        const open = this.#open(currency)
        return [[open], [{ kind: 'deposit', wallet: open.wallet, amount: this.#amount(currency, 40) }]]
      }).flat(),
    )
  }

  step(): Step {
    const operation = this.operation()
    const isNamed = 'bizId' in operation
    const roll = this.#random.int(100)
    // Duplicates in flight at once, and with others under their name.
    if (isNamed && roll < 12) return Array.from({ length: 2 + this.#random.int(3) }, () => operation)
    if (isNamed && roll < 20) return [operation, this.#conflicting(operation), operation]
    if (roll < 40) return [operation, this.operation()]
    return [operation]
  }

  operation(): Operation {
    const roll = this.#random.int(100)
    if (roll < 2) return this.#open(this.#random.pick(codes))
    if (roll < 14) return this.#named.length > 0 ? this.#random.pick(this.#named) : this.#transfer()
    if (roll < 18) return this.#named.length > 0 ? this.#conflicting(this.#random.pick(this.#named)) : this.#transfer()
    if (roll < 28) return this.#funding('deposit')
    if (roll < 36) return this.#funding('withdraw')
    if (roll < 38) return { kind: 'freeze', wallet: this.#wallet() }
    if (roll < 47) return { kind: 'unfreeze', wallet: this.#wallet() }
    if (roll < 49) return { kind: 'close', wallet: this.#wallet() }
    return this.#transfer()
  }

  #open(currency: Currency): Extract<Operation, { kind: 'open' }> {
    this.#wallets.push(currency)
    return { kind: 'open', wallet: this.#wallets.length - 1, currency }
  }

  #transfer(): Transfer {
    const source = this.#wallet()
    const own = this.#wallets[source]!
    const alike = this.#wallets.flatMap((currency, at) => (currency === own && at !== source ? [at] : []))
    const target = this.#random.chance(0.92) ? this.#random.pick(alike) : this.#anyRef()
    return this.#keep({
      kind: 'transfer',
      source: this.#random.chance(0.96) ? source : this.#anyRef(),
      target,
      amount: this.#amount(own, 12),
      currency: this.#random.chance(0.97) ? own : this.#random.pick(codes),
      ...this.#name(),
    })
  }

  #funding(kind: Funding['kind']): Funding {
    const wallet = this.#wallet()
    const own = this.#wallets[wallet]!
    const ref = this.#random.chance(0.97) ? wallet : this.#anyRef()
    return this.#keep({ kind, wallet: ref, amount: this.#amount(own, kind === 'deposit' ? 12 : 10), ...this.#name() })
  }

  #keep<Named extends Transfer | Funding>(operation: Named): Named {
    if (operation.bizId !== undefined) this.#named.push(operation)
    return operation
  }

  #name(): { bizId?: string } {
    return this.#random.chance(0.6) ? { bizId: `biz-${this.#names++}` } : {}
  }

  /** The same name for something else, or for the same amount in other words. */
  #conflicting(named: Transfer | Funding): Transfer | Funding {
    const roll = this.#random.int(4)
    if (roll === 0 && named.kind === 'transfer') return { ...named, source: named.target, target: named.source }
    if (roll === 1) return { ...named, amount: named.amount.includes('.') ? `${named.amount}0` : `${named.amount}.0` }
    if (roll === 2 && named.kind !== 'transfer')
      return { ...named, kind: named.kind === 'deposit' ? 'withdraw' : 'deposit' }
    return { ...named, amount: `1${named.amount}` }
  }

  #wallet(): number {
    return this.#random.int(this.#wallets.length)
  }

  #anyRef(): WalletRef {
    const refs = ['absent', 'malformed', 'external', 'foreign'] as const
    return this.#random.chance(0.5) ? this.#wallet() : this.#random.pick(refs)
  }

  /** Around `middle`, in all the spellings that a client may choose; now and then one that is refused. */
  #amount(currency: Currency, middle: number): string {
    const decimals = currencies[currency]
    if (this.#random.chance(0.04))
      return this.#random.pick(['0', '-1', '01', '1e3', `0.${'0'.repeat(decimals)}1`, '9'.repeat(39), '1.'])
    const whole = String(this.#random.int(2 * middle))
    const places = this.#random.chance(0.3) ? 0 : this.#random.int(decimals + 1)
    const fraction = Array.from({ length: places }, () => this.#random.int(10)).join('')
    const amount = fraction === '' ? whole : `${whole}.${fraction}`
    return /[1-9]/.test(amount) ? amount : '1'
  }
}
