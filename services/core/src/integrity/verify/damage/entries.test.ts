import { describe, expect, test } from 'vitest'
import {
  change,
  type Damage,
  damage,
  inCopy,
  named,
  testEach,
  transfer,
  useBooks,
  verify,
  wallet,
} from '../../../../../../test/setup/verification/copies.ts'

useBooks()

const damages: Damage[] = [
  {
    what: 'an amount changed',
    sql: () => change('back', 'amount = 41'),
    expected: [
      'flow-balance a#3',
      'flow-chain a#3',
      'wallet-balance a',
      'flow-balance b#2',
      'flow-chain b#2',
      'wallet-balance b',
    ],
  },
  {
    what: 'an amount changed, with all balances adjusted',
    sql: () => `
      ${change('last', 'amount = 2, source_balance = source_balance - 1, target_balance = target_balance + 1')}
      update wallet set balance = balance - 1 where id = ${wallet('a')};
      update wallet set balance = balance + 1 where id = ${wallet('b')}`,
    expected: ['flow-chain a#6', 'wallet-mac a', 'flow-chain b#4', 'wallet-mac b'],
  },
  {
    what: 'the balance after an entry changed',
    sql: () => change('back', 'source_balance = 61.50'),
    expected: ['flow-balance b#2', 'flow-chain b#2'],
  },
  {
    what: 'the balance after the last entry of a wallet changed',
    sql: () => change('last', 'target_balance = 61.50'),
    expected: ['flow-balance b#4', 'flow-chain b#4', 'wallet-balance b'],
  },
  {
    what: 'a remark changed',
    sql: () => `update transfer set remark = 'gift' where id = ${transfer('rent')}`,
    expected: ['flow-chain a#2', 'flow-chain b#1'],
  },
  {
    what: 'two entries of a wallet swapped',
    sql: () => change('back', 'target_sequence = 4') + change('big', 'source_sequence = 3'),
    expected: [
      'flow-order-count a#3',
      'flow-balance a#3',
      'flow-chain a#3',
      'flow-order-count a#4',
      'flow-time a#4',
      'flow-balance a#4',
      'flow-chain a#4',
      'flow-balance a#5',
      'flow-chain a#5',
      'flow-chain b#2',
      'flow-chain c#1',
    ],
  },
  {
    what: 'the sequence of a source changed',
    sql: () => change('back', 'source_sequence = 9'),
    expected: [
      'flow-chain a#3',
      'flow-sequence b#3',
      'flow-sequence b#9',
      'flow-time b#9',
      'wallet-balance b',
      'wallet-head b',
    ],
  },
  {
    what: 'the sequence of a target changed',
    sql: () => change('back', 'target_sequence = 9'),
    expected: [
      'flow-sequence a#4',
      'flow-sequence a#9',
      'flow-time a#9',
      'wallet-balance a',
      'wallet-head a',
      'flow-chain b#2',
    ],
  },
  {
    what: 'another source',
    sql: () => change('last', `source_wallet_id = ${wallet('c')}`),
    expected: [
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'wallet-head a',
      'flow-chain b#4',
      'flow-sequence c#6',
      'wallet-sequence c',
      'wallet-order-count c',
      'wallet-balance c',
      'wallet-head c',
    ],
  },
  {
    what: 'another target',
    sql: () => change('last', `target_wallet_id = ${wallet('c')}`),
    expected: [
      'flow-chain a#6',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'flow-sequence c#4',
      'wallet-sequence c',
      'wallet-order-count c',
      'wallet-balance c',
      'wallet-head c',
    ],
  },
  {
    what: 'the order count of an entry changed',
    sql: () => change('back', 'source_order_count = 7'),
    expected: ['flow-order-count b#2', 'flow-chain b#2'],
  },
  {
    what: 'a deposit counted as an order',
    sql: () => change('deposit', 'target_order_count = 1'),
    expected: ['flow-order-count a#1', 'flow-chain a#1'],
  },
  {
    what: 'a MAC changed',
    sql: () => change('back', `source_mac = '\\x01' || sha256('x')`),
    expected: ['flow-chain b#2'],
  },
  {
    what: 'a MAC replaced by that of another entry',
    sql: () => change('back', `source_mac = (select target_mac from transfer where id = ${transfer('rent')})`),
    expected: ['flow-chain b#2'],
  },
  {
    what: "the MACs of a transfer's entries swapped",
    sql: () => change('back', 'source_mac = target_mac, target_mac = source_mac'),
    expected: ['flow-chain a#3', 'flow-chain b#2'],
  },
  {
    what: 'a MAC of an unknown format',
    sql: () => change('back', `source_mac = '\\x02' || substr(source_mac, 2)`),
    expected: ['flow-format b#2'],
  },
  {
    what: 'a MAC cut short',
    sql: () => change('back', 'source_mac = substr(source_mac, 1, 20)'),
    expected: ['flow-format b#2'],
  },
  {
    what: "a transfer's position changed",
    sql: () => change('small', 'position = 99'),
    expected: [
      'flow-chain b#3',
      'flow-chain c#2',
      'log-position withdrawal',
      'log-position small',
      'transfer-time small',
      'ledger-position books',
    ],
  },
  {
    what: "a transfer's order_count changed",
    sql: () => change('back', 'order_count = 9'),
    expected: ['flow-chain a#3', 'flow-chain b#2', 'transfer-order-count back'],
  },
  {
    what: 'the time of a transfer changed',
    sql: () => change('back', `created_at = created_at - interval '1 hour'`),
    expected: ['flow-time a#3', 'flow-chain a#3', 'flow-time b#2', 'flow-chain b#2', 'transfer-time back'],
  },
  {
    what: "a customer's wallet below zero",
    sql: () => change('back', 'source_balance = -5'),
    expected: ['flow-balance b#2', 'flow-floor b#2', 'flow-chain b#2'],
  },
  {
    what: "a transfer's currency changed",
    sql: () => `update transfer set currency = 'EUR' where id = ${transfer('back')}`,
    expected: ['flow-currency a#3', 'flow-chain a#3', 'flow-currency b#2', 'flow-chain b#2'],
  },
  {
    what: 'a duplicate bizId',
    sql: () => `drop index transfer_biz_id; update transfer set biz_id = 'inv-1' where id = ${transfer('big')}`,
    expected: [
      'database-object index public.transfer_biz_id',
      'flow-chain a#4',
      'flow-chain c#1',
      'transfer-biz-id rent',
    ],
  },
  {
    what: 'an amount with too many decimals',
    sql: () => change('back', 'amount = 40.000'),
    expected: ['flow-amount a#3', 'flow-chain a#3', 'flow-amount b#2', 'flow-chain b#2'],
  },
  {
    what: 'an amount of zero',
    sql: () => `alter domain positive_amount drop constraint positive_amount_check; ${change('last', 'amount = 0')}`,
    expected: [
      'database-object domain public.positive_amount',
      'flow-amount a#6',
      'flow-balance a#6',
      'flow-chain a#6',
      'wallet-balance a',
      'flow-amount b#4',
      'flow-balance b#4',
      'flow-chain b#4',
      'wallet-balance b',
    ],
  },
  {
    what: 'a withdrawal turned into a deposit',
    sql: () => `update transfer set type = 'DEPOSIT' where id = ${transfer('withdrawal')}`,
    expected: [
      'transfer-type externalDollar#2',
      'flow-chain externalDollar#2',
      'transfer-type a#5',
      'flow-chain a#5',
      'transfer-audit withdrawal',
    ],
  },
]

describe('each damage to the entries of a transfer is reported with its rule and place, and nothing else is', () =>
  testEach(damages))

test('a sequence used for a payment and for a receipt of one wallet is reported', () =>
  inCopy(async ({ ownerUrl, serviceUrl }) => {
    // No index forbids it: each covers one side.
    await damage(ownerUrl, change('small', 'source_sequence = 1'))
    // Which of the two entries is read first is not defined.
    const expected = ['flow-sequence b#1', 'flow-sequence b#4', 'flow-chain c#2']
    expect(named(await verify(serviceUrl))).toEqual(expect.arrayContaining(expected))
  }))
