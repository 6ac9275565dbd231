import { describe, expect, test } from 'vitest'
import { type Found, reconcile } from './reconcile.ts'
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

/** The orders and balances of a service that has made exactly these transfers. */
function foundAfter(...done: Sent[]): Found {
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
  Object.values(reconcile(tenant, all, found)).map((entries: string[]) => (entries.length > 0 ? 1 : 0))

test('a service whose answers were true has no discrepancies', () => {
  expect(reconcile(tenant, all, foundAfter(acknowledged))).toEqual({ lost: [], duplicated: [], unexplained: [] })
})

describe('a discrepancy is', () => {
  test('an acknowledged transfer that does not exist', () => {
    expect(count(foundAfter())).toEqual([1, 0, 1])
    // Even if the balances include it.
    expect(count({ ...foundAfter(acknowledged), orders: [] })).toEqual([1, 0, 0])
  })

  test('a transfer that exists twice, or with another transferId than was acknowledged', () => {
    const { orders, balances } = foundAfter(acknowledged)
    expect(count({ orders: [...orders, ...orders], balances })).toEqual([0, 1, 0])
    expect(count({ orders: [{ ...orders[0]!, transferId: 'trf-other' }], balances })).toEqual([0, 1, 0])
  })

  test('a rejected, undone or unknown transfer that exists, or one with another amount', () => {
    const { orders, balances } = foundAfter(acknowledged)
    for (const each of [refused, notDone, sent('4', 'acknowledged')])
      expect(count(foundAfter(acknowledged, each))).toEqual([0, 0, 1])
    expect(count({ orders: [{ ...orders[0]!, amount: '1.01' }], balances })).toEqual([0, 0, 1])
  })

  test('a balance that does not match the transfers, or is missing', () => {
    const { orders, balances } = foundAfter(acknowledged)
    expect(count({ orders, balances: new Map([...balances, ['b', '11.01']]) })).toEqual([0, 0, 1])
    expect(count({ orders, balances: new Map([...balances].slice(1)) })).toEqual([0, 0, 1])
  })
})
