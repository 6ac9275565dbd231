import { Decimal, formatBalance, postingGraceMs, type WalletStatus } from '@workspace-wallet/contract'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { Books, type Limit, unitsOf } from '../../../../../test/model/books.ts'
import type {
  Currency,
  HoldCreation as HoldRequest,
  Posting as PostingRequest,
  Request,
} from '../../../../../test/model/requests.ts'
import { asUuid, ledgerStateOf, postingOf, walletStateOf } from '../../../../../test/setup/ledger-states.ts'
import { emptyHead } from '../chain/chain.ts'
import { decide } from './decide.ts'
import {
  type Command,
  type HoldCreation,
  isAboutHolds,
  type LedgerRequest,
  type Posting,
  type RequestResult,
  type WalletRef,
} from './requests.ts'
import { dayOf, limitKey, walletSubject } from './spending.ts'
import type { HoldState, LedgerState, LimitState, WalletState } from './state.ts'

/** The wallets of these tests. Money comes from outside the workspace and leaves it through an external wallet for each currency. */
const ids = { a: 'a', b: 'b', c: 'c', ether: 'd', frozen: 'e', closed: 'f', missing: 'z' }
const outside: Partial<Record<Currency, string>> = { USD: 'x', ETH: 'y' }
type OwnWallet = { id: string; currency: Currency; status: WalletStatus; cents: bigint }

function walletsWith(cents: bigint): OwnWallet[] {
  const own = { currency: 'USD', status: 'ACTIVE', cents } as const
  return [
    { ...own, id: ids.a },
    { ...own, id: ids.b },
    { ...own, id: ids.c, cents: 0n },
    { ...own, id: ids.ether, currency: 'ETH' },
    { ...own, id: ids.frozen, status: 'FROZEN' },
    { ...own, id: ids.closed, status: 'CLOSED', cents: 0n },
  ]
}

const now = new Date('2026-01-01T00:00:00.000Z')
const caller = { actor: 'key:test', requestId: 'request', clientAddress: null }
const given = { remark: null, reference: null, ...caller }

const amount = fc
  .tuple(fc.bigInt(0n, 100_000_000_000_000_000_000_000n), fc.constantFrom('', '.5', '.50', '.05', '.00'))
  .map(([whole, fraction]) => `${whole}${fraction}`)
  .filter(text => unitsOf(text) > 0n)
const small = fc.integer({ min: 1, max: 3000 }).map(cents => (cents / 100).toFixed(2))
const anyAmount = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom('1', '1.00', '2.5', '2.50') },
  { weight: 4, arbitrary: small },
  { weight: 1, arbitrary: amount },
)
const malformed = ['nonsense', 'gibberish']
const own = fc.oneof(
  { weight: 30, arbitrary: fc.constantFrom(ids.a, ids.b, ids.c) },
  { weight: 9, arbitrary: fc.constantFrom(...Object.values(ids)) },
  { weight: 2, arbitrary: fc.constantFrom(...malformed, 'nonsense') },
)
const wallet = fc.oneof({ weight: 30, arbitrary: own }, { weight: 1, arbitrary: fc.constantFrom('x', 'y') })
const currency = fc.oneof(
  { weight: 9, arbitrary: fc.constant('USD' as const) },
  { weight: 1, arbitrary: fc.constant('ETH' as const) },
)
const balance = fc.constantFrom(0n, 1_000n, 20_000n, 20_000n)
const orderName = fc.constantFrom('p', 'q', 'r', 's', 't', 'u', 'v', 'w')
const holdName = fc.constantFrom('h', 'h', 'i', 'i', 'j', 'k')

const terms = fc.record({ amount: anyAmount, currency })
const named = fc.option(fc.record({ bizId: orderName }), { freq: 3, nil: {} })
const draw = fc.oneof(
  { weight: 2, arbitrary: fc.constant({}) },
  {
    weight: 1,
    arbitrary: fc.record({ holdId: holdName, holdRemainder: fc.constantFrom('KEEP' as const, 'RELEASE' as const) }),
  },
)
const transferSides = fc.record({
  kind: fc.constant('transfer' as const),
  sourceWalletId: wallet,
  targetWalletId: wallet,
})
const money: fc.Arbitrary<PostingRequest> = fc.oneof(
  {
    weight: 6,
    arbitrary: fc
      .tuple(transferSides, terms, named, draw)
      .map(([sides, terms, named, draw]) => ({ ...sides, ...terms, ...named, ...draw })),
  },
  {
    weight: 1,
    arbitrary: fc
      .tuple(own, terms, named)
      .map(([walletId, terms, named]) => ({ kind: 'deposit' as const, walletId, ...terms, ...named })),
  },
  {
    weight: 1,
    arbitrary: fc.tuple(own, terms, named, draw).map(([walletId, terms, named, draw]) => ({
      kind: 'withdrawal' as const,
      walletId,
      ...terms,
      ...named,
      ...draw,
    })),
  },
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('reversal' as const),
      reversesTransferId: orderName,
      amount: anyAmount,
      currency,
      bizId: orderName,
    }),
  },
)
const aboutHolds: fc.Arbitrary<Request> = fc.oneof(
  {
    weight: 4,
    arbitrary: fc.record({
      kind: fc.constant('hold' as const),
      walletId: wallet,
      amount: anyAmount,
      currency,
      bizId: holdName,
      expiresInSeconds: fc.constantFrom(60, 60, 90),
    }),
  },
  { weight: 1, arbitrary: fc.record({ kind: fc.constant('release' as const), holdId: holdName }) },
)
const batchOfRequests = fc
  .uniqueArray(money, { minLength: 2, maxLength: 4, selector: ({ bizId }) => bizId ?? {} })
  .map((transfers): Request => ({ kind: 'batch', transfers }))
const anyRequest = fc.oneof(
  { weight: 5, arbitrary: money as fc.Arbitrary<Request> },
  { weight: 2, arbitrary: aboutHolds },
  { weight: 1, arbitrary: batchOfRequests },
)
/** A number repeats an earlier request. */
const requests = fc
  .array(fc.oneof({ weight: 6, arbitrary: anyRequest }, { weight: 1, arbitrary: fc.nat() }), {
    maxLength: 50,
    size: 'max',
  })
  .map(drawn =>
    drawn.reduce<Request[]>((made, each) => {
      const request = typeof each === 'number' ? made[each % made.length] : each
      if (request) made.push(request)
      return made
    }, []),
  )

/** Limits with what was spent under them, at most one for each subject and currency. */
const limits = fc.uniqueArray(
  fc
    .tuple(
      fc.record({
        walletId: fc.constantFrom(null, ids.a, ids.b),
        currency: fc.constantFrom<Currency[]>('USD', 'USD', 'ETH'),
      }),
      fc.option(fc.record({ perTransfer: centsText(1n, 8_000n) }), { nil: {} }),
      fc.option(fc.record({ perDay: centsText(1n, 8_000n) }), { nil: {} }),
      centsText(0n, 4_000n),
    )
    .map(([of, perTransfer, perDay, spent]) => ({ limit: { ...of, ...perTransfer, ...perDay } as Limit, spent })),
  { maxLength: 4, selector: ({ limit }) => keyOf(limit) },
)

function centsText(min: bigint, max: bigint): fc.Arbitrary<string> {
  return fc.bigInt(min, max).map(cents => centsToDecimal(cents).toFixed(2))
}

function subjectOf({ walletId }: Limit): string {
  return walletId === null ? caller.actor : walletSubject(asUuid(walletId))
}

function keyOf(limit: Limit): string {
  return limitKey({ subject: subjectOf(limit), currency: limit.currency })
}

function limitState(limit: Limit, spent: string, day: string): LimitState {
  const { currency, perTransfer, perDay } = limit
  return {
    workspaceId: asUuid('w'),
    subject: subjectOf(limit),
    currency,
    perTransfer: perTransfer === undefined ? null : new Decimal(perTransfer),
    perDay: perDay === undefined ? null : new Decimal(perDay),
    day,
    spent: new Decimal(spent),
    countedFrom: 0,
    createdAt: now,
    updatedAt: now,
    revision: 1,
    mac: emptyHead,
  }
}

function centsToDecimal(cents: bigint): Decimal {
  return new Decimal(cents.toString()).dividedBy(100)
}

function ledgerOf(wallets: readonly OwnWallet[], status: LedgerState['status'] = 'OPEN'): LedgerState {
  const lastPostedAt = new Date('2025-12-31T00:00:00.000Z')
  const stored = { sequence: 7, orderCount: 3 }
  const states = [
    ...wallets.map(({ id, cents, ...each }) =>
      walletStateOf(id, { ...each, balance: centsToDecimal(cents), ...stored }),
    ),
    ...Object.entries(outside).map(([currency, id]) => walletStateOf(id, { kind: 'EXTERNAL', currency, ...stored })),
  ]
  return ledgerStateOf(states, { status, orderCount: 41, holdCount: 5, position: 60, lastPostedAt })
}

/** The model with the same wallets. */
function booksOf(wallets: readonly OwnWallet[], limits: readonly Limit[]): Books {
  const books = new Books(limits)
  const at = now.toISOString()
  for (const { id, currency, status, cents } of wallets) {
    books.createWallet({ kind: 'wallet', by: 'OPERATOR', name: '', currency }, { id, at })
    const amount = centsToDecimal(cents).toFixed(2)
    const deposit = { id: `balance of ${id}`, at, position: 0, batchId: null }
    if (cents > 0n) books.post({ kind: 'deposit', walletId: id, amount }, deposit)
    if (status !== 'ACTIVE') books.changeStatus({ kind: 'status', by: 'OPERATOR', walletId: id, status })
  }
  return books
}

/** Has the model carry out a request. Returns the kind of the result, or the code of the rejection and the place in its batch. */
function applyTo(books: Books, made: Request, at: number): string {
  const outcome = books.answer(made, now.getTime())
  if (outcome === 'new') {
    carryOut(books, made, at)
    return 'posted'
  }
  if (outcome.code === '2000') return 'replayed'
  return 'index' in outcome && outcome.index !== undefined ? `${outcome.code} ${outcome.index}` : outcome.code
}

function carryOut(books: Books, made: Request, at: number): void {
  const time = now.toISOString()
  if (made.kind === 'hold') books.hold(made, { id: holdIdOf(at), at: time })
  else if (made.kind === 'release') books.end(books.holds.get(made.holdId)!, 'RELEASED', time)
  else
    for (const [place, each] of postingsOf(made).entries())
      books.post(each, { id: transferIdOf(at, place), at: time, position: 0, batchId: null })
}

function postingsOf(made: Request): PostingRequest[] {
  return made.kind === 'batch' ? made.transfers : [made as PostingRequest]
}

const holdIdOf = (at: number) => `hold ${at}`
const transferIdOf = (at: number, place: number) => `transfer ${at} ${place}`

/** The request of the model for `decide`, with IDs of its own. */
function ledgerRequestOf(made: Request, at: number): LedgerRequest {
  if (made.kind === 'hold') return request([holdCommandOf(made, holdIdOf(at))])
  if (made.kind === 'release') return request([{ kind: 'hold release', hold: { bizId: made.holdId }, ...caller }])
  return request(postingsOf(made).map((each, place) => moneyCommandOf(each, transferIdOf(at, place))))
}

/** A malformed name is an object of its own, so that only the texts can be equal. */
function walletRef(name: string): WalletRef {
  return malformed.includes(name) ? { malformed: name } : asUuid(name)
}

function holdCommandOf({ kind: _, walletId, ...terms }: HoldRequest, holdId: string): Command {
  return {
    kind: 'hold creation',
    holdId: asUuid(holdId),
    ...given,
    ...terms,
    reference: null,
    walletId: walletRef(walletId),
  }
}

function moneyCommandOf(made: PostingRequest, transferId: string): Command {
  const { amount, bizId = null } = made
  const terms = {
    transferId: asUuid<'transfer'>(transferId),
    batchId: null,
    ...given,
    amount,
    currency: made.currency!,
  }
  if (made.kind === 'reversal')
    return { kind: 'reversal', ...terms, bizId: made.bizId, reverses: { bizId: made.reversesTransferId } }
  const { holdId, holdRemainder } = made
  const draw = holdId === undefined ? null : { hold: { bizId: holdId }, keepsRest: holdRemainder === 'KEEP' }
  const posting = { kind: 'posting', ...terms, bizId, draw } as const
  if (made.kind === 'transfer') {
    const [sourceWalletId, targetWalletId] = [walletRef(made.sourceWalletId), walletRef(made.targetWalletId)]
    return { ...posting, type: 'TRANSFER', sourceWalletId, targetWalletId }
  }
  const [external, wallet] = [walletRef(outside[made.currency!]!), walletRef(made.walletId)]
  const sides =
    made.kind === 'deposit'
      ? { type: 'DEPOSIT' as const, sourceWalletId: external, targetWalletId: wallet }
      : { type: 'WITHDRAWAL' as const, sourceWalletId: wallet, targetWalletId: external }
  return { ...posting, ...sides, actor: 'operator' }
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
      fc.property(requests, balance, limits, fc.boolean(), (made, cents, limits, isNewDay) => {
        const wallets = walletsWith(cents)
        const books = booksOf(
          wallets,
          limits.map(({ limit }) => limit),
        )
        // What was spent on another day does not count.
        if (!isNewDay) for (const { limit, spent } of limits) books.spend(limit, unitsOf(spent), now.getTime())
        const states = limits.map(({ limit, spent }) => limitState(limit, spent, isNewDay ? '2025-12-31' : dayOf(now)))
        const ledger = { ...ledgerOf(wallets), limits: new Map(states.map(limit => [limitKey(limit), limit])) }
        const before = totalsOf(books)

        const asked = made.map(ledgerRequestOf)
        const decision = decide(ledger, asked, now, 0)
        const expected = new Array<string>(made.length)
        for (const areAboutHolds of [true, false])
          for (const [at, each] of asked.entries())
            if (isAboutHolds(each) === areAboutHolds) expected[at] = applyTo(books, made[at]!, at)
        expect(decision.results.map(kindOf)).toEqual(expected)

        const after = new Map([...ledger.wallets, ...decision.wallets.map(each => [each.id, each] as const)])
        for (const { walletId, balance } of books.wallets.values()) {
          const { held, heldUntil, ...found } = after.get(asUuid(walletId))!
          const reserved = balance - books.available(walletId, now.getTime())
          expect([found.balance, held].map(unitsIn)).toEqual([balance, reserved])
          expect(heldUntil === null).toBe(reserved === 0n)
        }
        const totals = totalsOf(books)
        for (const [currency, id] of Object.entries(outside) as [Currency, string][])
          expect(unitsIn(after.get(asUuid(id))!.balance)).toBe(before.get(currency)! - totals.get(currency)!)

        const spent = new Map(decision.limits.map(limit => [limitKey(limit), limit.spent]))
        for (const { limit, spent: earlier } of limits) {
          const found = spent.get(keyOf(limit)) ?? new Decimal(isNewDay ? 0 : earlier)
          expect(unitsIn(found)).toBe(books.spentUnder(limit, now.getTime()))
        }
        const holds = decision.holds.map(({ bizId, status, remaining }) => [bizId, status, unitsIn(remaining)])
        const modelled = [...new Set(books.holds.keys())].flatMap(name => {
          const { bizId, status, remaining } = books.holds.get(name)!
          return name === bizId ? [[bizId, status, remaining]] : []
        })
        expect(holds).toEqual(modelled)
      }),
      { numRuns: 1000 },
    )
  })

  test('entries cancel out, sequences and numbers have no gaps, and each balance follows from the one before', () => {
    fc.assert(
      fc.property(requests, balance, (made, cents) => {
        const ledger = ledgerOf(walletsWith(cents))
        const decision = decide(ledger, made.map(ledgerRequestOf), now, 0)
        const { events, transfers, entries, wallets, holds, after } = decision
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
            expect(entry.balanceAfter).toBe(formatBalance(balance, after.currency))
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

  // Core never asks for these: the model has no such requests.
  test.each<[string, Partial<Posting>, string]>([
    ['a deposit that comes from a customer', { type: 'DEPOSIT' }, 'W001'],
    [
      'a deposit to the world outside',
      { type: 'DEPOSIT', sourceWalletId: asUuid('x'), targetWalletId: asUuid('y') },
      'W001',
    ],
    ['a deposit in another currency', { type: 'DEPOSIT', sourceWalletId: asUuid('y') }, 'T003'],
    ['a withdrawal that goes to a customer', { type: 'WITHDRAWAL' }, 'W001'],
    [
      'a withdrawal from the world outside',
      { type: 'WITHDRAWAL', sourceWalletId: asUuid('x'), targetWalletId: asUuid('y') },
      'W001',
    ],
    [
      'a withdrawal to where it comes from',
      { type: 'WITHDRAWAL', sourceWalletId: asUuid('x'), targetWalletId: asUuid('x') },
      'T004',
    ],
    [
      'a withdrawal above the limit of the key that makes it',
      { type: 'WITHDRAWAL', targetWalletId: asUuid('x') },
      'T008',
    ],
  ])('refuses %s', (_, changes, code) => {
    const limit = limitState({ walletId: null, currency: 'USD', perDay: '0.99' }, '0', dayOf(now))
    const ledger = { ...ledgerOf(walletsWith(10_000n)), limits: new Map([[limitKey(limit), limit]]) }
    expect(resultOf(ledger, transfer({ actor: caller.actor, ...changes }))).toBe(code)
  })

  test('does not modify its arguments', () => {
    const ledger = ledgerOf(walletsWith(10_000n))
    const before = JSON.stringify([...ledger.wallets.values()])
    decide(ledger, [request([transfer({})]), request([holdCreation({})])], now, 0)
    expect(JSON.stringify([...ledger.wallets.values()])).toBe(before)
  })

  test('returns a replay whatever the state: emptied, frozen and closed wallets, a halted ledger', () => {
    const [first] = decide(ledgerOf(walletsWith(10_000n)), [request([transfer({ bizId: 'p' })])], now, 0).transfers
    const emptied = { ...ledgerOf(walletsWith(0n), 'HALTED'), byBizId: new Map([['p', first!]]) }
    expect(resultOf(emptied, transfer({ bizId: 'p', transferId: asUuid('other'), amount: '1.0' }))).toBe('replayed')
  })

  test('refuses new requests to a closed ledger (GA2032) and to a halted one (S002)', () => {
    expect(resultOf(ledgerOf(walletsWith(100n), 'CLOSED'), transfer({}))).toBe('GA2032')
    expect(resultOf(ledgerOf(walletsWith(100n), 'HALTED'), transfer({}))).toBe('S002')
  })

  test('returns a resent posting with the same transferId as a replay', () => {
    const [first] = decide(ledgerOf(walletsWith(100n)), [request([transfer({})])], now, 0).transfers
    const ledger = { ...ledgerOf(walletsWith(0n)), byTransferId: new Map([[first!.transferId, first!]]) }
    expect(resultOf(ledger, transfer({}), { mayBePosted: true })).toBe('replayed')
  })

  test('refuses a request past its deadline with S002, but still returns one that was posted as a replay', () => {
    const ledger = ledgerOf(walletsWith(10_000n))
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
    const ledger = ledgerOf(walletsWith(10_000n))
    const late = new Date('2020-01-01T00:00:00.000Z')
    const { transfers } = decide(ledger, [request([transfer({})])], late, 0)
    expect(transfers[0]!.createdAt).toEqual(ledger.lastPostedAt)
  })

  test('stores the amount exactly as it was sent', () => {
    const asked = request([transfer({ amount: '1.50' })])
    const { transfers, entries } = decide(ledgerOf(walletsWith(10_000n)), [asked], now, 0)
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
      ledger.holds.get(asUuid('open'))!.expiresAt,
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
    const other = {
      sourceWalletId: asUuid<'wallet'>(ids.b),
      targetWalletId: asUuid<'wallet'>(ids.a),
      amount: '99999.00',
    }
    expect(resultOf(ledger, transfer(other))).toBe('T002')
  })

  test('stay as they are in a halted ledger', () => {
    const ledger = { ...ledgerWithHolds([hold('due', 10, -1)]), status: 'HALTED' as const }
    expect(decide(ledger, [request([transfer({})])], now, 0)).toMatchObject({ events: [], holds: [], wallets: [] })
  })
})

/** The units of the model. */
function unitsIn(value: Decimal): bigint {
  return unitsOf(value.toFixed())
}

/** What all wallets of the model have together, by currency. */
function totalsOf(books: Books): Map<string, bigint> {
  const totals = new Map<string, bigint>()
  for (const { currency, balance } of books.wallets.values())
    totals.set(currency, (totals.get(currency) ?? 0n) + balance)
  return totals
}

/** A ledger in which wallet a has 100.00 and these holds. */
function ledgerWithHolds(holds: HoldState[]): LedgerState {
  const ledger = ledgerOf(walletsWith(10_000n))
  const open = holds.filter(({ expiresAt }) => expiresAt > now)
  const held = Decimal.sum(...holds.map(({ remaining }) => remaining))
  const wallet = { ...ledger.wallets.get(asUuid(ids.a))!, held, heldUntil: new Date(0) }
  return {
    ...ledger,
    wallets: new Map([...ledger.wallets, [wallet.id, wallet]]),
    holds: new Map(holds.map(each => [each.id, each])),
    nextExpiries: new Map([[wallet.id, open[0]?.expiresAt ?? null]]),
  }
}

function hold(id: string, amount: number, expiresInSeconds: number): HoldState {
  const expiresAt = new Date(now.getTime() + expiresInSeconds * 1000)
  const createdAt = new Date(expiresAt.getTime() - 100_000)
  return {
    workspaceId: asUuid('w'),
    id: asUuid(id),
    number: 1,
    walletNumber: 1,
    bizId: id,
    walletId: asUuid(ids.a),
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
  return { workspaceId: asUuid('w'), commands, mayBePosted: false, deadlineMs: 0, ...changes }
}

function transfer(changes: Partial<Posting>): Posting {
  return postingOf({
    transferId: asUuid('t'),
    sourceWalletId: asUuid(ids.a),
    targetWalletId: asUuid(ids.b),
    ...changes,
  })
}

function holdCreation(changes: Partial<HoldCreation>): HoldCreation {
  return {
    kind: 'hold creation',
    holdId: asUuid('new'),
    bizId: 'new',
    walletId: asUuid(ids.a),
    amount: '1.00',
    currency: 'USD',
    expiresInSeconds: 60,
    ...given,
    ...changes,
  }
}
