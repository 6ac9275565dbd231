import { describe, expect, test } from 'vitest'
import { type Found, judge } from './reconcile.ts'
import type { Sent, Tenant } from './traffic.ts'

const tenant: Tenant = {
  workspaceId: 'wsp',
  signers: [],
  wallets: [
    { walletId: 'a', cents: 1000n },
    { walletId: 'b', cents: 1000n },
  ],
  empty: { walletId: 'c', cents: 0n },
}

function sent(bizId: string, state: Sent['state']): Sent {
  const order = { bizId, sourceWalletId: 'a', targetWalletId: 'b', amount: '1.00', currency: 'USD' }
  const transferId = state === 'acknowledged' ? `trf-${bizId}` : null
  return { order, tenant, signer: { apiKey: '', apiSecret: '' }, isExcessive: false, state, transferId }
}

/** What a service keeps that has done all of these, and nothing else. */
function kept(...done: Sent[]): Found {
  const moved = BigInt(100 * done.length)
  const amount = (cents: bigint) => `${cents / 100n}.${String(cents % 100n).padStart(2, '0')}`
  return {
    orders: done.map(({ order }) => ({ ...order, transferId: `trf-${order.bizId}` })),
    balances: new Map([
      ['a', amount(1000n - moved)],
      ['b', amount(1000n + moved)],
      ['c', '0.00'],
    ]),
  }
}

const acknowledged = sent('1', 'acknowledged')
const refused = sent('2', 'refused')
const notDone = sent('3', 'not done')
const all = [acknowledged, refused, notDone]
const count = (found: Found) =>
  Object.values(judge(tenant, all, found)).map((entries: string[]) => (entries.length > 0 ? 1 : 0))

test('a service that did what it said is acquitted', () => {
  expect(judge(tenant, all, kept(acknowledged))).toEqual({ lost: [], doubled: [], unexplained: [] })
})

describe('what is found out', () => {
  test('an acknowledged transfer that is not there', () => {
    expect(count(kept())).toEqual([1, 0, 1])
    // Although the balances say that it was done.
    expect(count({ ...kept(acknowledged), orders: [] })).toEqual([1, 0, 0])
  })

  test('a transfer that is there twice, or as another one than was acknowledged', () => {
    const { orders, balances } = kept(acknowledged)
    expect(count({ orders: [...orders, ...orders], balances })).toEqual([0, 1, 0])
    expect(count({ orders: [{ ...orders[0]!, transferId: 'trf-other' }], balances })).toEqual([0, 1, 0])
  })

  test('a transfer that was refused, or certainly not done, and is there; one that nobody sent; another amount', () => {
    const { orders, balances } = kept(acknowledged)
    for (const each of [refused, notDone, sent('4', 'acknowledged')])
      expect(count(kept(acknowledged, each))).toEqual([0, 0, 1])
    expect(count({ orders: [{ ...orders[0]!, amount: '1.01' }], balances })).toEqual([0, 0, 1])
  })

  test('a balance that its transfers do not leave, or that is not told', () => {
    const { orders, balances } = kept(acknowledged)
    expect(count({ orders, balances: new Map([...balances, ['b', '11.01']]) })).toEqual([0, 0, 1])
    expect(count({ orders, balances: new Map([...balances].slice(1)) })).toEqual([0, 0, 1])
  })
})
