import { Decimal, postingGraceMs, type WalletStatus } from '@workspace-wallet/contract'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { emptyHead } from '../chain/chain.ts'
import { decide } from './decide.ts'
import { type Decision, type LedgerState, malformedWallet, type Posting, type WalletState } from './posting.ts'

/**
 * A simple model of `decide`: balances in whole cents, one posting after the other. Both must return the same results.
 */
type ModelWallet = { kind: WalletState['kind']; currency: string; status: WalletStatus; cents: bigint }
type ModelOrder = { type: string; source: string; target: string; cents: bigint; currency: string }

function modelOf(wallets: Map<string, ModelWallet>, orders: Map<string, ModelOrder>, posting: Posting): string {
  const cents = centsOf(posting.amount)
  const { type, sourceWalletId, targetWalletId, currency, bizId } = posting
  const order = { type, source: sourceWalletId, target: targetWalletId, cents, currency }
  const existing = bizId === null ? undefined : orders.get(bizId)
  if (existing) return JSON.stringify(existing, bigints) === JSON.stringify(order, bigints) ? 'replayed' : 'T005'
  if (sourceWalletId === targetWalletId) return 'T004'
  const source = wallets.get(sourceWalletId)
  const target = wallets.get(targetWalletId)
  if (!source || (source.kind === 'EXTERNAL') !== (type === 'DEPOSIT')) return 'W001'
  if (!target || (target.kind === 'EXTERNAL') !== (type === 'WITHDRAWAL')) return 'W001'
  if (source.status !== 'ACTIVE' || target.status !== 'ACTIVE') return 'W002'
  if (source.currency !== currency || target.currency !== currency) return 'T003'
  if (source.kind === 'CUSTOMER' && source.cents < cents) return 'T002'
  source.cents -= cents
  target.cents += cents
  if (bizId !== null) orders.set(bizId, order)
  return 'posted'
}

const bigints = (_key: string, value: unknown) => (typeof value === 'bigint' ? String(value) : value)

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

const posting: fc.Arbitrary<Posting> = fc
  .record({
    type: fc.constantFrom('TRANSFER', 'TRANSFER', 'TRANSFER', 'DEPOSIT', 'WITHDRAWAL'),
    sourceWalletId: fc.constantFrom(...Object.values(ids), malformedWallet('nonsense')),
    targetWalletId: fc.constantFrom(...Object.values(ids), malformedWallet('nonsense')),
    amount: fc.oneof({ weight: 4, arbitrary: small }, { weight: 1, arbitrary: amount }),
    currency: fc.constantFrom('USD', 'USD', 'USD', 'EUR'),
    bizId: fc.option(fc.constantFrom('p', 'q', 'r', 's'), { freq: 2 }),
  })
  .map(
    (drawn): Posting => ({
      ...drawn,
      type: drawn.type as Posting['type'],
      workspaceId: 'w',
      transferId: '',
      remark: null,
      actor: 'key:test',
      requestId: 'request',
      clientAddress: null,
      mayBePosted: false,
      deadlineMs: 0,
    }),
  )

const batch = fc
  .array(posting, { maxLength: 60 })
  .map(drawn => drawn.map((entry, at) => ({ ...entry, transferId: `t${at}` })))
const now = new Date('2026-01-01T00:00:00.000Z')

function wallet(id: string, model: ModelWallet): [string, WalletState] {
  const balance = new Decimal(model.cents.toString()).dividedBy(100)
  const { kind, currency, status } = model
  const row = {
    workspaceId: 'w',
    number: null,
    name: '',
    createdAt: now,
    updatedAt: now,
    revision: 1,
    mac: emptyHead,
    version: '1',
  }
  return [id, { ...row, id, kind, currency, status, balance, sequence: 7, orderCount: 3, head: emptyHead }]
}

function modelWallets(cents: bigint): Map<string, ModelWallet> {
  const own = { kind: 'CUSTOMER', currency: 'USD', status: 'ACTIVE', cents } as const
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
  return {
    workspaceId: 'w',
    status,
    walletCount: 7,
    orderCount: 41,
    lastPostedAt: new Date('2025-12-31T00:00:00.000Z'),
    haltReason: null,
    revision: 1,
    mac: emptyHead,
    version: '1',
    wallets: new Map([...wallets].map(([id, model]) => wallet(id, model))),
    byBizId: new Map(),
    byTransferId: new Map(),
  }
}

function kindOf(result: Decision['results'][number]): string {
  return result.kind === 'refused' ? result.error.code : result.kind
}

describe('decide', () => {
  test('returns the same result as the model for every posting, and the same balances', () => {
    fc.assert(
      fc.property(batch, fc.bigInt(0n, 10_000n), (postings, cents) => {
        const model = modelWallets(cents)
        const ledger = ledgerOf(model)
        const orders = new Map<string, ModelOrder>()
        const decision = decide(ledger, postings, now, 0)
        expect(decision.results.map(kindOf)).toEqual(postings.map(entry => modelOf(model, orders, entry)))
        for (const after of decision.wallets)
          expect(after.balance.times(100).toFixed()).toBe(model.get(after.id)!.cents.toString())
      }),
      { numRuns: 1000 },
    )
  })

  test('entries cancel out, sequences and numbers have no gaps, and each balance follows from the one before', () => {
    fc.assert(
      fc.property(batch, fc.bigInt(0n, 10_000n), (postings, cents) => {
        const ledger = ledgerOf(modelWallets(cents))
        const { transfers, entries, wallets, ledger: after } = decide(ledger, postings, now, 0)
        expect(entries).toHaveLength(transfers.length * 2)
        const numbers = transfers.flatMap(transfer => transfer.number ?? [])
        expect(numbers).toEqual(numbers.map((_, at) => 42 + at))
        expect(after.orderCount).toBe(41 + numbers.length)
        for (const after of wallets) {
          let { balance, sequence, orderCount: orders } = ledger.wallets.get(after.id)!
          for (const entry of entries.filter(({ walletId }) => walletId === after.id)) {
            balance = entry.direction === 'IN' ? balance.plus(entry.amount) : balance.minus(entry.amount)
            sequence += 1
            expect(entry.balanceAfter).toBe(balance.toFixed(2))
            expect(entry.sequence).toBe(sequence)
            if (transfers.find(({ transferId }) => transferId === entry.transferId)!.number !== null) orders += 1
            expect(entry.orderCount).toBe(orders)
            if (after.kind === 'CUSTOMER') expect(balance.isNegative()).toBe(false)
          }
          expect([after.balance.toFixed(2), after.sequence, after.orderCount]).toEqual([
            balance.toFixed(2),
            sequence,
            orders,
          ])
        }
      }),
      { numRuns: 500 },
    )
  })

  test('does not modify its arguments', () => {
    const ledger = ledgerOf(modelWallets(10_000n))
    const before = JSON.stringify([...ledger.wallets.values()])
    decide(ledger, [transfer({})], now, 0)
    expect(JSON.stringify([...ledger.wallets.values()])).toBe(before)
  })

  test('returns a replay whatever the state: emptied, frozen and closed wallets, a halted ledger', () => {
    const [first] = decide(ledgerOf(modelWallets(10_000n)), [transfer({ bizId: 'p' })], now, 0).transfers
    const emptied = ledgerOf(modelWallets(0n), 'HALTED')
    const byBizId = new Map([['p', first!]])
    const again = transfer({ bizId: 'p', transferId: 'other', amount: '1.0' })
    expect(kindOf(decide({ ...emptied, byBizId }, [again], now, 0).results[0]!)).toBe('replayed')
  })

  test('refuses new postings to a closed ledger (GA2032) and to a halted one (S002)', () => {
    expect(kindOf(decide(ledgerOf(modelWallets(100n), 'CLOSED'), [transfer({})], now, 0).results[0]!)).toBe('GA2032')
    expect(kindOf(decide(ledgerOf(modelWallets(100n), 'HALTED'), [transfer({})], now, 0).results[0]!)).toBe('S002')
  })

  test('returns a resent posting with the same transferId as a replay', () => {
    const [first] = decide(ledgerOf(modelWallets(100n)), [transfer({})], now, 0).transfers
    const ledger = { ...ledgerOf(modelWallets(0n)), byTransferId: new Map([[first!.transferId, first!]]) }
    expect(kindOf(decide(ledger, [transfer({ mayBePosted: true })], now, 0).results[0]!)).toBe('replayed')
  })

  test('refuses a posting past its deadline with S002, but still returns one that was posted as a replay', () => {
    const ledger = ledgerOf(modelWallets(10_000n))
    const asked = transfer({ deadlineMs: 1_000 })
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
    expect(decide(ledger, [transfer({})], late, 0).transfers[0]!.createdAt).toEqual(ledger.lastPostedAt)
  })

  test('stores the amount exactly as it was sent', () => {
    const { transfers, entries } = decide(ledgerOf(modelWallets(10_000n)), [transfer({ amount: '1.50' })], now, 0)
    expect([transfers[0]!.amount, ...entries.map(entry => entry.amount)]).toEqual(['1.50', '1.50', '1.50'])
  })
})

function transfer(changes: Partial<Posting>): Posting {
  return {
    type: 'TRANSFER',
    workspaceId: 'w',
    transferId: 't',
    bizId: null,
    sourceWalletId: ids.a,
    targetWalletId: ids.b,
    amount: '1.00',
    currency: 'USD',
    remark: null,
    actor: 'key:test',
    requestId: 'request',
    clientAddress: null,
    mayBePosted: false,
    deadlineMs: 0,
    ...changes,
  }
}
