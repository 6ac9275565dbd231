import { Decimal, postingGraceMs, type WalletStatus } from '@workspace-wallet/contract'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { ledgerStateOf, postingOf, walletStateOf } from '../../../../../test/setup/ledger-states.ts'
import { emptyHead } from '../chain/chain.ts'
import { decide } from './decide.ts'
import {
  type Command,
  type HoldCreation,
  isAboutHolds,
  type LedgerRequest,
  type Name,
  type Posting,
  type RequestResult,
  type Reversal,
  type WalletRef,
} from './requests.ts'
import { limitKey } from './spending.ts'
import type { HoldState, LedgerState, LimitState, WalletState } from './state.ts'

/**
 * A simple model of `decide`: balances in whole cents, one command after the other. Both must return the same results.
 */
type ModelWallet = { kind: WalletState['kind']; currency: string; status: WalletStatus; cents: bigint; held: bigint }
type ModelOrder = {
  type: string
  source: string
  target: string
  cents: bigint
  currency: string
  hold: string | null
  reverses: string | null
  reversed: bigint
}
type ModelHold = { wallet: string; cents: bigint; remaining: bigint; currency: string; status: string; seconds: number }

/** A limit of the key of all commands, or of a wallet. */
type ModelLimit = {
  subject: string
  currency: string
  perTransfer: bigint | null
  perDay: bigint | null
  spent: bigint
}

class Model {
  wallets: Map<string, ModelWallet>
  orders = new Map<string, ModelOrder>()
  holds = new Map<string, ModelHold>()
  limits: ModelLimit[]

  constructor(wallets: Map<string, ModelWallet>, limits: ModelLimit[]) {
    this.wallets = wallets
    this.limits = structuredClone(limits)
  }

  /** The kind of the result, or the code of the refusal and the place of the command in its batch. */
  apply({ commands }: LedgerRequest): string {
    const repeated = commands.map(command => this.#repeated(command))
    if (repeated.every(each => each === 'same')) return 'replayed'
    if (repeated.some(each => each !== 'new')) {
      const different = repeated.indexOf('different')
      const first = different < 0 ? repeated.indexOf('same') : different
      return commands.length > 1 ? `T005 ${first}` : 'T005'
    }
    const before = structuredClone({
      wallets: this.wallets,
      orders: this.orders,
      holds: this.holds,
      limits: this.limits,
    })
    for (const [at, command] of commands.entries()) {
      const code = this.#decide(command)
      if (code === 'posted') continue
      Object.assign(this, before)
      return commands.length > 1 ? `${code} ${at}` : code
    }
    return 'posted'
  }

  #repeated(command: Command): 'new' | 'same' | 'different' {
    if (command.kind === 'expiry') return 'new'
    if (command.kind === 'hold release') return this.#hold(command.hold)?.status === 'RELEASED' ? 'same' : 'new'
    if (command.kind === 'hold creation') {
      const { bizId, walletId, amount, currency, expiresInSeconds } = command
      const hold = this.holds.get(bizId)
      if (!hold) return 'new'
      const terms = [textOf(walletId), centsOf(amount), currency, expiresInSeconds]
      return isEqual(terms, [hold.wallet, hold.cents, hold.currency, hold.seconds]) ? 'same' : 'different'
    }
    const order = command.bizId === null ? undefined : this.orders.get(command.bizId)
    if (!order) return 'new'
    const { cents, currency } = order
    const isSame =
      command.kind === 'reversal'
        ? isEqual(
            [nameIn(command.reverses), centsOf(command.amount), command.currency],
            [order.reverses, cents, currency],
          )
        : isEqual(
            [
              command.type,
              textOf(command.sourceWalletId),
              textOf(command.targetWalletId),
              centsOf(command.amount),
              command.currency,
            ],
            [order.type, order.source, order.target, cents, currency],
          ) &&
          order.reverses === null &&
          order.hold === (command.draw ? nameIn(command.draw.hold) : null)
    return isSame ? 'same' : 'different'
  }

  #decide(command: Command): string {
    switch (command.kind) {
      case 'posting':
        return this.#post(command)
      case 'reversal':
        return this.#reverse(command)
      case 'hold creation':
        return this.#reserve(command)
      case 'hold release': {
        const hold = this.#hold(command.hold)
        if (!hold) return 'H001'
        if (hold.status !== 'OPEN') return 'H002'
        this.#free(hold, hold.remaining, 'RELEASED')
        return 'posted'
      }
      case 'expiry':
        return 'posted'
    }
  }

  #post(posting: Posting): string {
    const cents = centsOf(posting.amount)
    const { type, currency, draw } = posting
    const sourceWalletId = textOf(posting.sourceWalletId)
    const targetWalletId = textOf(posting.targetWalletId)
    if (sourceWalletId === targetWalletId) return 'T004'
    const source = this.wallets.get(sourceWalletId)
    const target = this.wallets.get(targetWalletId)
    if (!source || (source.kind === 'EXTERNAL') !== (type === 'DEPOSIT')) return 'W001'
    if (!target || (target.kind === 'EXTERNAL') !== (type === 'WITHDRAWAL')) return 'W001'
    const hold = draw && this.#hold(draw.hold)
    if (hold === undefined) return 'H001'
    if (hold && hold.wallet !== sourceWalletId) return 'H004'
    if (source.status !== 'ACTIVE' || target.status !== 'ACTIVE') return 'W002'
    if (hold && hold.status !== 'OPEN') return 'H002'
    if (source.currency !== currency || target.currency !== currency) return 'T003'
    if (hold && hold.remaining < cents) return 'H003'
    if (type !== 'DEPOSIT' && this.#isLimited(sourceWalletId, currency, cents, true)) return 'T008'
    if (!hold && source.kind === 'CUSTOMER' && source.cents - source.held < cents) return 'T002'
    if (hold) this.#free(hold, draw!.keepsRest ? cents : hold.remaining, 'CAPTURED')
    this.#move(posting, sourceWalletId, targetWalletId, type, draw && nameIn(draw.hold), null)
    return 'posted'
  }

  #reverse(reversal: Reversal): string {
    const cents = centsOf(reversal.amount)
    const original = this.orders.get(nameIn(reversal.reverses))
    if (original?.type !== 'TRANSFER') return 'T001'
    if (original.reverses !== null) return 'T006'
    const source = this.wallets.get(original.target)!
    const target = this.wallets.get(original.source)!
    if (source.status !== 'ACTIVE' || target.status !== 'ACTIVE') return 'W002'
    if (original.currency !== reversal.currency) return 'T003'
    if (original.cents - original.reversed < cents) return 'T007'
    if (this.#isLimited(original.target, original.currency, cents, true)) return 'T008'
    if (source.cents - source.held < cents) return 'T002'
    original.reversed += cents
    this.#move(reversal, original.target, original.source, 'TRANSFER', null, nameIn(reversal.reverses))
    return 'posted'
  }

  #reserve({ bizId, walletId: ref, amount, currency, expiresInSeconds }: HoldCreation): string {
    const walletId = textOf(ref)
    const wallet = this.wallets.get(walletId)
    const cents = centsOf(amount)
    if (wallet?.kind !== 'CUSTOMER') return 'W001'
    if (wallet.status !== 'ACTIVE') return 'W002'
    if (wallet.currency !== currency) return 'T003'
    if (this.#isLimited(walletId, currency, cents, false)) return 'T008'
    if (wallet.cents - wallet.held < cents) return 'T002'
    wallet.held += cents
    this.holds.set(bizId, {
      wallet: walletId,
      cents,
      remaining: cents,
      currency,
      status: 'OPEN',
      seconds: expiresInSeconds,
    })
    return 'posted'
  }

  #limitsOf(walletId: string, currency: string): ModelLimit[] {
    const subjects = [caller.actor, `wallet:${walletId}`]
    return this.limits.filter(
      limit =>
        subjects.includes(limit.subject) &&
        limit.currency === currency &&
        // Without both, it was cleared.
        (limit.perTransfer !== null || limit.perDay !== null),
    )
  }

  #isLimited(walletId: string, currency: string, cents: bigint, countsForDay: boolean): boolean {
    return this.#limitsOf(walletId, currency).some(
      ({ perTransfer, perDay, spent }) =>
        (perTransfer !== null && cents > perTransfer) || (countsForDay && perDay !== null && spent + cents > perDay),
    )
  }

  #hold(name: Name): ModelHold | undefined {
    return this.holds.get(nameIn(name))
  }

  #free(hold: ModelHold, cents: bigint, end: string): void {
    hold.remaining -= cents
    this.wallets.get(hold.wallet)!.held -= cents
    if (hold.remaining === 0n) hold.status = end
  }

  #move(
    { amount, currency, bizId }: Posting | Reversal,
    source: string,
    target: string,
    type: string,
    hold: string | null,
    reverses: string | null,
  ): void {
    const cents = centsOf(amount)
    this.wallets.get(source)!.cents -= cents
    if (type !== 'DEPOSIT') for (const limit of this.#limitsOf(source, currency)) limit.spent += cents
    this.wallets.get(target)!.cents += cents
    const order = { type, source, target, cents, currency, hold, reverses, reversed: 0n }
    if (bizId !== null) this.orders.set(bizId, order)
  }
}

/** Names in these tests are bizIds. */
function nameIn(name: Name): string {
  return 'bizId' in name ? name.bizId : name.id
}

function textOf(ref: WalletRef): string {
  return typeof ref === 'string' ? ref : ref.malformed
}

function isEqual(some: readonly unknown[], others: readonly unknown[]): boolean {
  return some.every((value, at) => value === others[at])
}

function centsOf(amount: string): bigint {
  const [whole = '0', fraction = ''] = amount.split('.')
  return BigInt(whole) * 100n + BigInt(fraction.padEnd(2, '0'))
}

const ids = { a: 'a', b: 'b', c: 'c', euro: 'd', frozen: 'e', closed: 'f', outside: 'x', missing: 'z' }
const amount = fc
  .tuple(fc.bigInt(0n, 100_000_000_000_000_000_000_000n), fc.constantFrom('', '.5', '.50', '.05', '.00'))
  .map(([whole, fraction]) => `${whole}${fraction}`)
  .filter(text => centsOf(text) > 0n)
const small = fc.integer({ min: 1, max: 3000 }).map(cents => (cents / 100).toFixed(2))

const caller = { actor: 'key:test', requestId: 'request', clientAddress: null }
// Each is an object of its own, so that only the texts can be equal.
const malformedWallet = fc.constantFrom('nonsense', 'nonsense', 'gibberish').map(malformed => ({ malformed }))
const wallet = fc.oneof(
  { weight: 11, arbitrary: fc.constantFrom(...Object.values(ids), ids.a, ids.a, ids.b) },
  { weight: 2, arbitrary: malformedWallet },
)
const currency = fc.constantFrom('USD', 'USD', 'USD', 'EUR')
const orderName = fc.constantFrom('p', 'q', 'r', 's', 't', 'u')
const holdName = fc.constantFrom('h', 'i', 'j', 'k')
const given = { remark: null, reference: null, ...caller }
const anyAmount = fc.oneof({ weight: 6, arbitrary: small }, { weight: 1, arbitrary: amount })

const posting = fc
  .record({
    type: fc.constantFrom(
      'TRANSFER' as const,
      'TRANSFER' as const,
      'TRANSFER' as const,
      'DEPOSIT' as const,
      'WITHDRAWAL' as const,
    ),
    sourceWalletId: wallet,
    targetWalletId: wallet,
    amount: anyAmount,
    currency,
    bizId: fc.option(orderName, { freq: 2 }),
    draw: fc.option(fc.record({ hold: holdName.map(bizId => ({ bizId })), keepsRest: fc.boolean() }), { freq: 1 }),
  })
  .map(
    (drawn): Posting => ({
      kind: 'posting',
      transferId: '',
      batchId: null,
      ...given,
      ...drawn,
      draw: drawn.type === 'DEPOSIT' ? null : drawn.draw,
    }),
  )

const reversal = fc
  .record({ reverses: orderName.map(bizId => ({ bizId })), amount: small, currency, bizId: orderName })
  .map((drawn): Reversal => ({ kind: 'reversal', transferId: '', batchId: null, ...given, ...drawn }))

const holdCommand: fc.Arbitrary<Command> = fc.oneof(
  {
    weight: 2,
    arbitrary: fc
      .record({
        walletId: wallet,
        amount: anyAmount,
        currency,
        bizId: holdName,
        expiresInSeconds: fc.constantFrom(60, 60, 90),
      })
      .map(drawn => ({ kind: 'hold creation' as const, holdId: '', ...given, ...drawn })),
  },
  { weight: 1, arbitrary: holdName.map(bizId => ({ kind: 'hold release' as const, hold: { bizId }, ...caller })) },
)

const money = fc.oneof({ weight: 4, arbitrary: posting }, { weight: 2, arbitrary: reversal })
const commands: fc.Arbitrary<Command[]> = fc.oneof(
  { weight: 5, arbitrary: money.map(command => [command]) },
  { weight: 2, arbitrary: holdCommand.map(command => [command]) },
  { weight: 1, arbitrary: fc.uniqueArray(money, { minLength: 2, maxLength: 4, selector: ({ bizId }) => bizId ?? {} }) },
)

/** Requests with IDs of their own. */
const batch = fc.array(commands, { maxLength: 50 }).map(drawn =>
  drawn.map((commands, at) =>
    request(
      commands.map((command, place) => ({
        ...command,
        ...('transferId' in command && { transferId: `t${at}-${place}` }),
        ...('holdId' in command && { holdId: `h${at}` }),
      })) as Command[],
    ),
  ),
)
const now = new Date('2026-01-01T00:00:00.000Z')

const bound = fc.option(fc.bigInt(1n, 8_000n))
const limits = fc.uniqueArray(
  fc.record({
    subject: fc.constantFrom(caller.actor, 'wallet:a', 'wallet:b'),
    currency: fc.constantFrom('USD', 'USD', 'EUR'),
    perTransfer: bound,
    perDay: bound,
    spent: fc.bigInt(0n, 4_000n),
  }),
  { maxLength: 4, selector: limitKey },
)

function limitState({ perTransfer, perDay, spent, ...limit }: ModelLimit, day: string): LimitState {
  return {
    ...limit,
    workspaceId: 'w',
    perTransfer: perTransfer === null ? null : centsToDecimal(perTransfer),
    perDay: perDay === null ? null : centsToDecimal(perDay),
    day,
    spent: centsToDecimal(spent),
    countedFrom: 0,
    createdAt: now,
    updatedAt: now,
    revision: 1,
    mac: emptyHead,
  }
}

function walletState(id: string, { cents, held, ...model }: ModelWallet): WalletState {
  const balance = centsToDecimal(cents)
  return walletStateOf(id, { ...model, balance, held: centsToDecimal(held), sequence: 7, orderCount: 3 })
}

function centsToDecimal(cents: bigint): Decimal {
  return new Decimal(cents.toString()).dividedBy(100)
}

function modelWallets(cents: bigint): Map<string, ModelWallet> {
  const own = { kind: 'CUSTOMER', currency: 'USD', status: 'ACTIVE', cents, held: 0n } as const
  return new Map<string, ModelWallet>([
    [ids.a, { ...own }],
    [ids.b, { ...own }],
    [ids.c, { ...own, cents: 0n }],
    [ids.euro, { ...own, currency: 'EUR' }],
    [ids.frozen, { ...own, status: 'FROZEN' }],
    [ids.closed, { ...own, status: 'CLOSED', cents: 0n }],
    [ids.outside, { ...own, kind: 'EXTERNAL', cents: 0n }],
  ])
}

function ledgerOf(wallets: Map<string, ModelWallet>, status: LedgerState['status'] = 'OPEN'): LedgerState {
  const lastPostedAt = new Date('2025-12-31T00:00:00.000Z')
  const states = Array.from(wallets, ([id, model]) => walletState(id, model))
  return ledgerStateOf(states, { status, orderCount: 41, holdCount: 5, position: 60, lastPostedAt })
}

function kindOf(result: RequestResult): string {
  if (result.kind !== 'refused') return result.kind
  const index = (result.error.details as { index?: number } | undefined)?.index
  return index === undefined ? result.error.code : `${result.error.code} ${index}`
}

/** The result of a single command on a ledger. */
function resultOf(ledger: LedgerState, command: Command, changes: Partial<LedgerRequest> = {}): string {
  return kindOf(decide(ledger, [request([command], changes)], now, 0).results[0]!)
}

describe('decide', () => {
  test('returns the same result as the model for every request, and the same wallets, holds and limits', () => {
    fc.assert(
      fc.property(batch, fc.bigInt(0n, 10_000n), limits, fc.boolean(), (requests, cents, given, isNewDay) => {
        // What was spent on another day does not count.
        const today = given.map(limit => ({ ...limit, spent: isNewDay ? 0n : limit.spent }))
        const model = new Model(modelWallets(cents), today)
        const states = given.map(limit => limitState(limit, isNewDay ? '2025-12-31' : '2026-01-01'))
        const ledger = {
          ...ledgerOf(model.wallets),
          limits: new Map(states.map(limit => [limitKey(limit), limit])),
        }
        const decision = decide(ledger, requests, now, 0)
        const expected = new Array<string>(requests.length)
        for (const areAboutHolds of [true, false])
          for (const [at, each] of requests.entries())
            if (isAboutHolds(each) === areAboutHolds) expected[at] = model.apply(each)
        expect(decision.results.map(kindOf)).toEqual(expected)
        for (const { id, balance, held, heldUntil } of decision.wallets) {
          const wallet = model.wallets.get(id)!
          expect([balance, held].map(each => each.times(100).toFixed())).toEqual([`${wallet.cents}`, `${wallet.held}`])
          expect(heldUntil === null).toBe(wallet.held === 0n)
        }
        const changed = new Map(decision.limits.map(limit => [limitKey(limit), limit.spent.times(100).toFixed()]))
        const spent = (limit: ModelLimit, at: number) =>
          changed.get(limitKey(limit)) ?? (limit.spent === today[at]!.spent ? `${limit.spent}` : 'not written')
        expect(model.limits.map(spent)).toEqual(model.limits.map(limit => `${limit.spent}`))
        const holds = decision.holds.map(({ bizId, status, remaining }) => [
          bizId,
          status,
          centsOf(remaining.toFixed(2)),
        ])
        const modelStates = [...model.holds].map(([bizId, { status, remaining }]) => [bizId, status, remaining])
        expect(holds).toEqual(modelStates)
      }),
      { numRuns: 2000 },
    )
  })

  test('entries cancel out, sequences and numbers have no gaps, and each balance follows from the one before', () => {
    fc.assert(
      fc.property(batch, fc.bigInt(0n, 10_000n), (requests, cents) => {
        const ledger = ledgerOf(modelWallets(cents))
        const { events, transfers, entries, wallets, holds, after } = decide(ledger, requests, now, 0)
        expect(entries).toHaveLength(transfers.length * 2)
        const positions = [...events, ...transfers].map(({ position }) => position)
        expect(positions).toEqual(positions.map((_, at) => 61 + at))
        const orders = transfers.filter(({ type }) => type === 'TRANSFER').map(({ orderCount }) => orderCount)
        expect(orders).toEqual(orders.map((_, at) => 42 + at))
        expect([after.position, after.orderCount]).toEqual([60 + positions.length, 41 + orders.length])
        const added = holds.filter(({ mac }) => mac === null)
        expect(added.map(({ number }) => number)).toEqual(added.map((_, at) => 6 + at))
        expect(after.holdCount).toBe(5 + added.length)
        for (const after of wallets) {
          let { balance, sequence, orderCount: orders } = ledger.wallets.get(after.id)!
          for (const entry of entries.filter(({ walletId }) => walletId === after.id)) {
            balance = entry.direction === 'IN' ? balance.plus(entry.amount) : balance.minus(entry.amount)
            sequence += 1
            expect(entry.balanceAfter).toBe(balance.toFixed(2))
            expect(entry.sequence).toBe(sequence)
            if (transfers.find(({ transferId }) => transferId === entry.transferId)!.type === 'TRANSFER') orders += 1
            expect(entry.orderCount).toBe(orders)
            if (after.kind === 'CUSTOMER') expect(balance.isNegative()).toBe(false)
          }
          expect([after.balance.toFixed(2), after.sequence, after.orderCount]).toEqual([
            balance.toFixed(2),
            sequence,
            orders,
          ])
          if (after.kind === 'CUSTOMER') expect(after.held.lessThanOrEqualTo(after.balance)).toBe(true)
        }
      }),
      { numRuns: 500 },
    )
  })

  test('does not modify its arguments', () => {
    const ledger = ledgerOf(modelWallets(10_000n))
    const before = JSON.stringify([...ledger.wallets.values()])
    decide(ledger, [request([transfer({})]), request([holdCreation({})])], now, 0)
    expect(JSON.stringify([...ledger.wallets.values()])).toBe(before)
  })

  test('returns a replay whatever the state: emptied, frozen and closed wallets, a halted ledger', () => {
    const [first] = decide(ledgerOf(modelWallets(10_000n)), [request([transfer({ bizId: 'p' })])], now, 0).transfers
    const emptied = { ...ledgerOf(modelWallets(0n), 'HALTED'), byBizId: new Map([['p', first!]]) }
    expect(resultOf(emptied, transfer({ bizId: 'p', transferId: 'other', amount: '1.0' }))).toBe('replayed')
  })

  test('refuses new requests to a closed ledger (GA2032) and to a halted one (S002)', () => {
    expect(resultOf(ledgerOf(modelWallets(100n), 'CLOSED'), transfer({}))).toBe('GA2032')
    expect(resultOf(ledgerOf(modelWallets(100n), 'HALTED'), transfer({}))).toBe('S002')
  })

  test('returns a resent posting with the same transferId as a replay', () => {
    const [first] = decide(ledgerOf(modelWallets(100n)), [request([transfer({})])], now, 0).transfers
    const ledger = { ...ledgerOf(modelWallets(0n)), byTransferId: new Map([[first!.transferId, first!]]) }
    expect(resultOf(ledger, transfer({}), { mayBePosted: true })).toBe('replayed')
  })

  test('refuses a request past its deadline with S002, but still returns one that was posted as a replay', () => {
    const ledger = ledgerOf(modelWallets(10_000n))
    const asked = request([transfer({})], { deadlineMs: 1_000 })
    expect(kindOf(decide(ledger, [asked], now, 1_000 + postingGraceMs).results[0]!)).toBe('posted')
    const late = decide(ledger, [asked], now, 1_001 + postingGraceMs)
    expect(kindOf(late.results[0]!)).toBe('S002')
    expect([late.transfers, late.wallets]).toEqual([[], []])
    const [first] = decide(ledger, [asked], now, 0).transfers
    const byTransferId = new Map([[first!.transferId, first!]])
    expect(kindOf(decide({ ...ledger, byTransferId }, [asked], now, 9_000).results[0]!)).toBe('replayed')
  })

  test('never decreases the time of a ledger when the clock is set back', () => {
    const ledger = ledgerOf(modelWallets(10_000n))
    const late = new Date('2020-01-01T00:00:00.000Z')
    const { transfers } = decide(ledger, [request([transfer({})])], late, 0)
    expect(transfers[0]!.createdAt).toEqual(ledger.lastPostedAt)
  })

  test('stores the amount exactly as it was sent', () => {
    const asked = request([transfer({ amount: '1.50' })])
    const { transfers, entries } = decide(ledgerOf(modelWallets(10_000n)), [asked], now, 0)
    expect([transfers[0]!.amount, ...entries.map(entry => entry.amount)]).toEqual(['1.50', '1.50', '1.50'])
  })
})

describe('due holds', () => {
  test('expire before anything else is decided, in the order in which they are due', () => {
    const ledger = ledgerWithHolds([hold('late', 10, -1), hold('early', 20, -5), hold('open', 30, 60)])
    const { events, results, wallets } = decide(ledger, [request([transfer({ amount: '70.00' })])], now, 0)
    expect(events.map(({ holdId, type }) => [holdId, type])).toEqual([
      ['early', 'hold.expired'],
      ['late', 'hold.expired'],
    ])
    expect(results.map(kindOf)).toEqual(['posted'])
    const [{ held, heldUntil, balance }] = wallets.filter(({ id }) => id === ids.a) as [WalletState]
    expect([held.toFixed(2), heldUntil, balance.toFixed(2)]).toEqual([
      '30.00',
      ledger.holds.get('open')!.expiresAt,
      '30.00',
    ])
  })

  test('an expired hold gets the time at which it expired, and can neither be drawn on nor released', () => {
    const due = hold('due', 10, 0)
    const draw = transfer({ draw: { hold: { bizId: 'due' }, keepsRest: false } })
    const release: Command = { kind: 'hold release', hold: { bizId: 'due' }, ...caller }
    const { results, holds } = decide(ledgerWithHolds([due]), [request([draw]), request([release])], now, 0)
    expect(results.map(kindOf)).toEqual(['H002', 'H002'])
    expect(holds).toMatchObject([{ status: 'EXPIRED', updatedAt: due.expiresAt }])
  })

  test('S002 instead of T002 while more holds are due than one batch expires', () => {
    const ledger = { ...ledgerWithHolds([hold('due', 10, -1), hold('more', 80, -1)]), hasMoreDueHolds: true }
    ledger.holds = new Map([...ledger.holds].slice(0, 1))
    expect(resultOf(ledger, transfer({ amount: '20.00' }))).toBe('posted')
    expect(resultOf(ledger, transfer({ amount: '21.00' }))).toBe('S002')
    expect(resultOf(ledger, holdCreation({ amount: '21.00' }))).toBe('S002')
    // Of another wallet no hold is due.
    const other = { sourceWalletId: ids.b, targetWalletId: ids.a, amount: '99999.00' }
    expect(resultOf(ledger, transfer(other))).toBe('T002')
  })

  test('stay as they are in a halted ledger', () => {
    const ledger = { ...ledgerWithHolds([hold('due', 10, -1)]), status: 'HALTED' as const }
    expect(decide(ledger, [request([transfer({})])], now, 0)).toMatchObject({ events: [], holds: [], wallets: [] })
  })
})

/** A ledger in which wallet a has 100.00 and these holds. */
function ledgerWithHolds(holds: HoldState[]): LedgerState {
  const model = modelWallets(10_000n)
  model.get(ids.a)!.held = holds.reduce((sum, { remaining }) => sum + centsOf(remaining.toFixed(2)), 0n)
  const ledger = ledgerOf(model)
  const open = holds.filter(({ expiresAt }) => expiresAt > now)
  const wallet = { ...ledger.wallets.get(ids.a)!, heldUntil: new Date(0) }
  return {
    ...ledger,
    wallets: new Map([...ledger.wallets, [ids.a, wallet]]),
    holds: new Map(holds.map(each => [each.id, each])),
    nextExpiries: new Map([[ids.a, open[0]?.expiresAt ?? null]]),
  }
}

function hold(id: string, amount: number, expiresInSeconds: number): HoldState {
  const expiresAt = new Date(now.getTime() + expiresInSeconds * 1000)
  const createdAt = new Date(expiresAt.getTime() - 100_000)
  return {
    workspaceId: 'w',
    id,
    number: 1,
    walletNumber: 1,
    bizId: id,
    walletId: ids.a,
    currency: 'USD',
    amount: `${amount}`,
    captured: new Decimal(0),
    remaining: new Decimal(amount),
    status: 'OPEN',
    expiresAt,
    reference: null,
    remark: null,
    createdAt,
    updatedAt: createdAt,
    revision: 1,
    mac: emptyHead,
  }
}

function request(commands: Command[], changes: Partial<LedgerRequest> = {}): LedgerRequest {
  return { workspaceId: 'w', commands, mayBePosted: false, deadlineMs: 0, ...changes }
}

function transfer(changes: Partial<Posting>): Posting {
  return postingOf({ transferId: 't', sourceWalletId: ids.a, targetWalletId: ids.b, ...changes })
}

function holdCreation(changes: Partial<HoldCreation>): HoldCreation {
  return {
    kind: 'hold creation',
    holdId: 'new',
    bizId: 'new',
    walletId: ids.a,
    amount: '1.00',
    currency: 'USD',
    expiresInSeconds: 60,
    ...given,
    ...changes,
  }
}
