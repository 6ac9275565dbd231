import { describe, expect, test } from 'vitest'
import { Random } from '../../cli/processes/random.ts'
import { amountOf, batch, type Command, draw, hold, orderBetween, release, reversal, transfer } from './commands.ts'
import { type Found, type ListedHold, reconcile } from './reconcile.ts'
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

const [a, b] = tenant.wallets as [Tenant['wallets'][0], Tenant['wallets'][0]]

function sent(state: Sent['state'], command: Command = transfer(orderBetween(a, b, 100))): Sent {
  const ids = state === 'acknowledged' ? command.orders.map(({ bizId }) => `trf-${bizId}`) : []
  return {
    command,
    tenant,
    signer: { apiKey: '', apiSecret: '' },
    isExcessive: false,
    state,
    ids,
    acknowledgedAtMs: null,
  }
}

/** The orders and balances of a service that has carried out exactly these commands, and has these holds. */
function foundAfter(done: Sent[], holds: ListedHold[] = []): Found {
  const orders = done.flatMap(({ command }) =>
    command.orders.map((order, at) => ({ ...order, original: command.reverses[at] })),
  )
  const cents = (text: string) => Number(text.replace('.', ''))
  const sum = (some: { amount: string }[]) => some.reduce((total, { amount }) => total + cents(amount), 0)
  const moved = (from: string) => sum(orders.filter(({ sourceWalletId }) => sourceWalletId === from))
  const rest = holds.reduce((total, { remainingAmount }) => total + cents(remainingAmount), 0)
  return {
    orders: orders.map(({ original, ...order }) => ({
      ...order,
      transferId: `trf-${order.bizId}`,
      reversesTransferId: original ? `trf-${original}` : null,
      reversedAmount: amountOf(sum(orders.filter(each => each.original === order.bizId))),
    })),
    holds,
    balances: new Map([
      ['a', { balance: amountOf(1000 - moved('a') + moved('b')), held: amountOf(rest) }],
      ['b', { balance: amountOf(1000 + moved('a') - moved('b')), held: '0.00' }],
      ['c', { balance: '0.00', held: '0.00' }],
    ]),
  }
}

const acknowledged = sent('acknowledged')
const refused = sent('refused')
const notDone = sent('not done')
const all = [acknowledged, refused, notDone]
const count = (found: Found, commands = all) =>
  Object.values(reconcile(tenant, commands, found)).map((entries: string[]) => (entries.length > 0 ? 1 : 0))

test('a service whose answers were true has no discrepancies', () => {
  expect(reconcile(tenant, all, foundAfter([acknowledged]))).toEqual({ lost: [], duplicated: [], unexplained: [] })
})

describe('a discrepancy is', () => {
  test('an acknowledged transfer that does not exist', () => {
    expect(count(foundAfter([]))).toEqual([1, 0, 1])
    // Even if the balances include it.
    expect(count({ ...foundAfter([acknowledged]), orders: [] })).toEqual([1, 0, 0])
  })

  test('a transfer that exists twice, or with another transferId than was acknowledged', () => {
    const { orders, holds, balances } = foundAfter([acknowledged])
    expect(count({ orders: [...orders, ...orders], holds, balances })).toEqual([0, 1, 0])
    expect(count({ orders: [{ ...orders[0]!, transferId: 'trf-other' }], holds, balances })).toEqual([0, 1, 0])
  })

  test('a rejected, undone or unknown transfer that exists, or one with another amount', () => {
    const { orders, holds, balances } = foundAfter([acknowledged])
    for (const each of [refused, notDone, sent('acknowledged')])
      expect(count(foundAfter([acknowledged, each]))).toEqual([0, 0, 1])
    expect(count({ orders: [{ ...orders[0]!, amount: '1.01' }], holds, balances })).toEqual([0, 0, 1])
  })

  test('a balance that does not match the transfers, or is missing', () => {
    const { orders, holds, balances } = foundAfter([acknowledged])
    expect(
      count({ orders, holds, balances: new Map([...balances, ['b', { balance: '11.01', held: '0.00' }]]) }),
    ).toEqual([0, 0, 1])
    expect(count({ orders, holds, balances: new Map([...balances].slice(1)) })).toEqual([0, 0, 1])
  })

  test('a reversal of another order, or a reversed amount that no reversals have', () => {
    const original = orderBetween(a, b, 100)
    const commands = [sent('acknowledged', transfer(original)), sent('acknowledged', reversal(original, 40))]
    const found = foundAfter(commands)
    expect(count(found, commands)).toEqual([0, 0, 0])
    const change = (at: number, fields: object) =>
      found.orders.map((each, place) => ({ ...each, ...(place === at && fields) }))
    expect(count({ ...found, orders: change(1, { reversesTransferId: 'trf-other' }) }, commands)).toEqual([0, 0, 1])
    expect(count({ ...found, orders: change(0, { reversedAmount: '0.41' }) }, commands)).toEqual([0, 0, 1])
  })

  test('a part of a batch', () => {
    const commands = [sent('acknowledged', batch([orderBetween(a, b, 100), orderBetween(b, a, 30)], 10))]
    const found = foundAfter(commands)
    expect(count(found, commands)).toEqual([0, 0, 0])
    expect(count({ ...found, orders: found.orders.slice(1) }, commands)).toEqual([1, 0, 1])
    const refused = [{ ...commands[0]!, state: 'refused' as const }]
    expect(count({ ...foundAfter([]), orders: found.orders.slice(0, 1) }, refused)).toEqual([0, 0, 1])
  })

  test('a hold that is missing, repeated or unknown, or is not as its draws and releases left it', () => {
    const created = hold(a, 300, false, new Random(1))
    const { bizId } = created.holdChange!
    const drawn = draw(orderBetween(a, b, 100), bizId, true)
    const commands = [sent('acknowledged', created), sent('acknowledged', drawn)]
    const amounts = { amount: '3.00', capturedAmount: '1.00', remainingAmount: '2.00' }
    const open: ListedHold = { bizId, walletId: 'a', status: 'OPEN', ...amounts }
    const found = foundAfter(commands, [open])
    expect(count(found, commands)).toEqual([0, 0, 0])
    expect(count(foundAfter(commands), commands)).toEqual([1, 0, 0])
    expect(count({ ...found, holds: [open, open] }, commands)).toEqual([0, 1, 1])
    expect(count(found, [])).toEqual([0, 0, 1])
    expect(count({ ...found, holds: [{ ...open, capturedAmount: '1.01' }] }, commands)).toEqual([0, 0, 1])
    expect(count(found, [...commands, sent('acknowledged', release(bizId))])).toEqual([0, 0, 1])
    const other = new Map(found.balances).set('a', { balance: '9.00', held: '2.01' })
    expect(count({ ...found, balances: other }, commands)).toEqual([0, 0, 1])
  })
})
