/** Random operations of the model tests. They depend only on the seed, not on answers. */
import type { Random } from '../../tools/services/random.ts'

/** A wallet by the order of creation, or an ID that is invalid in the workspace. */
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

/** Operations that a client sends at the same time. It waits for all answers before its next step. */
export type Step = Operation[]

/** With the number of decimals. */
export const currencies = { USD: 2, JPY: 0, ETH: 18 } as const
export type Currency = keyof typeof currencies
const codes = Object.keys(currencies) as Currency[]

/** Generates operations on a growing set of wallets. */
export class OperationGenerator {
  readonly #random: Random
  readonly #wallets: Currency[] = []
  /** Earlier operations with a bizId, to be repeated. */
  readonly #repeatable: (Transfer | Funding)[] = []
  #bizIds = 0

  constructor(random: Random) {
    this.#random = random
  }

  /** Creates two funded wallets of each currency. */
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
    const hasBizId = 'bizId' in operation
    const roll = this.#random.int(100)
    // Concurrent duplicates, some with a conflicting operation between them.
    if (hasBizId && roll < 12) return Array.from({ length: 2 + this.#random.int(3) }, () => operation)
    if (hasBizId && roll < 20) return [operation, this.#conflicting(operation), operation]
    if (roll < 40) return [operation, this.operation()]
    return [operation]
  }

  operation(): Operation {
    const roll = this.#random.int(100)
    if (roll < 2) return this.#open(this.#random.pick(codes))
    if (roll < 14) return this.#repeatable.length > 0 ? this.#random.pick(this.#repeatable) : this.#transfer()
    if (roll < 18)
      return this.#repeatable.length > 0 ? this.#conflicting(this.#random.pick(this.#repeatable)) : this.#transfer()
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
      ...this.#bizId(),
    })
  }

  #funding(kind: Funding['kind']): Funding {
    const wallet = this.#wallet()
    const own = this.#wallets[wallet]!
    const ref = this.#random.chance(0.97) ? wallet : this.#anyRef()
    return this.#keep({ kind, wallet: ref, amount: this.#amount(own, kind === 'deposit' ? 12 : 10), ...this.#bizId() })
  }

  #keep<Named extends Transfer | Funding>(operation: Named): Named {
    if (operation.bizId !== undefined) this.#repeatable.push(operation)
    return operation
  }

  #bizId(): { bizId?: string } {
    return this.#random.chance(0.6) ? { bizId: `biz-${this.#bizIds++}` } : {}
  }

  /** The same bizId with another operation, or with the same amount written differently. */
  #conflicting(operation: Transfer | Funding): Transfer | Funding {
    const roll = this.#random.int(4)
    if (roll === 0 && operation.kind === 'transfer')
      return { ...operation, source: operation.target, target: operation.source }
    if (roll === 1)
      return { ...operation, amount: operation.amount.includes('.') ? `${operation.amount}0` : `${operation.amount}.0` }
    if (roll === 2 && operation.kind !== 'transfer')
      return { ...operation, kind: operation.kind === 'deposit' ? 'withdraw' : 'deposit' }
    return { ...operation, amount: `1${operation.amount}` }
  }

  #wallet(): number {
    return this.#random.int(this.#wallets.length)
  }

  #anyRef(): WalletRef {
    const refs = ['absent', 'malformed', 'external', 'foreign'] as const
    return this.#random.chance(0.5) ? this.#wallet() : this.#random.pick(refs)
  }

  /** An amount around `middle`, in any valid notation, or sometimes an invalid one. */
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
