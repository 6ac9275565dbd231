import { uuidFromId } from '@workspace-wallet/contract'
import { describe } from 'vitest'
import {
  change,
  type Damage,
  likeAnEvent,
  orphan,
  testEach,
  transfer,
  uniqueness,
  useBooks,
  workspace,
} from '../../../../../../test/setup/verification/copies.ts'

useBooks()

const damages: Damage[] = [
  {
    what: 'the last transfer deleted',
    sql: () => `delete from transfer where id = ${transfer('last')}`,
    expected: [
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'wallet-head a',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'ledger-order-count books',
      'log-position euroDeposit',
    ],
  },
  {
    what: 'a transfer in the middle deleted',
    sql: () => `delete from transfer where id = ${transfer('back')}`,
    expected: [
      'flow-sequence a#4',
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'flow-sequence b#3',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'ledger-order-count books',
      'log-position big',
    ],
  },
  {
    what: 'the first transfer deleted',
    sql: () => `delete from transfer where id = ${transfer('rent')}`,
    expected: [
      'flow-sequence a#3',
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'flow-sequence b#2',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'ledger-order-count books',
      'log-position back',
    ],
  },
  {
    what: 'a transfer from a wallet to itself',
    sql: () => change('last', 'target_wallet_id = source_wallet_id, target_sequence = 7'),
    expected: [
      'flow-chain a#6',
      'flow-order-count a#7',
      'flow-balance a#7',
      'flow-chain a#7',
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'wallet-head a',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'transfer-wallets last',
    ],
  },
  {
    what: 'a transfer reversed',
    sql: () =>
      change(
        'last',
        ['wallet_id', 'sequence', 'order_count', 'balance', 'mac']
          .map(column => `source_${column} = target_${column}, target_${column} = source_${column}`)
          .join(', '),
      ),
    expected: [
      'flow-balance a#6',
      'flow-chain a#6',
      'wallet-balance a',
      'flow-balance b#4',
      'flow-chain b#4',
      'wallet-balance b',
    ],
  },
  {
    what: 'a transfer copied to the end',
    sql: () => `
      insert into transfer
      select (jsonb_populate_record(t, '{
        "id": "${uuidFromId('transfer', orphan)}", "position": 16, "order_count": 6,
        "source_sequence": 5, "source_order_count": 5, "target_sequence": 3, "target_order_count": 3}')).*
      from transfer t where id = ${transfer('small')}`,
    expected: [
      'flow-time b#5',
      'flow-balance b#5',
      'flow-chain b#5',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'flow-balance c#3',
      'flow-chain c#3',
      'wallet-sequence c',
      'wallet-order-count c',
      'wallet-balance c',
      'ledger-order-count books',
      'transfer-time orphan',
      'ledger-position books',
    ],
  },
  {
    what: 'a duplicate of a transfer',
    sql: () => `
      alter table transfer drop constraint transfer_pkey;
      drop index ${uniqueness.join(', ')};
      insert into transfer select * from transfer where id = ${transfer('back')}`,
    expected: [
      'database-object constraint public.transfer.transfer_pkey',
      'database-object index public.transfer_pkey',
      'database-object index public.transfer_position',
      'database-object index public.transfer_source',
      'database-object index public.transfer_target',
      'flow-sequence a#3',
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'flow-sequence b#2',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'ledger-order-count books',
      'log-position back',
    ],
  },
  {
    what: 'a transfer moved to another workspace',
    sql: () => change('last', `workspace_id = ${workspace('others')}`),
    expected: [
      'wallet-sequence a',
      'wallet-order-count a',
      'wallet-balance a',
      'wallet-head a',
      'wallet-sequence b',
      'wallet-order-count b',
      'wallet-balance b',
      'wallet-head b',
      'flow-wallet a#6',
      'flow-sequence a#6',
      'flow-wallet b#4',
      'flow-sequence b#4',
      'ledger-order-count books',
      'ledger-order-count others',
      'log-position euroDeposit',
      'log-position last',
      'transfer-time last',
      'ledger-position others',
    ],
  },
  {
    what: 'a deposit that core did not post',
    sql: () => `
      insert into transfer
      select (jsonb_populate_record(t, '{
        "id": "${uuidFromId('transfer', orphan)}", "type": "DEPOSIT", "position": 16,
        "source_sequence": 77, "source_order_count": 0, "target_sequence": 77, "target_order_count": 0}')).*
      from transfer t where id = ${transfer('last')}`,
    expected: [
      'flow-sequence a#77',
      'transfer-type a#77',
      'wallet-sequence a',
      'wallet-balance a',
      'flow-sequence b#77',
      'wallet-sequence b',
      'wallet-balance b',
      'transfer-audit orphan',
      'transfer-time orphan',
      'ledger-position books',
    ],
  },
  {
    what: 'a transfer with the UUID of an event',
    sql: () => change('last', `id = '${uuidFromId('transfer', likeAnEvent)}'`),
    expected: ['flow-chain a#6', 'flow-chain b#4', 'transfer-id likeAnEvent'],
  },
  {
    what: 'a transfer with the nil UUID',
    sql: () => change('last', `id = '00000000-0000-0000-0000-000000000000'`),
    expected: ['flow-chain a#6', 'flow-chain b#4', 'transfer-id trf_00000000000000000000000000'],
  },
  {
    what: 'two transfers with swapped positions',
    sql: () =>
      change('rent', 'position = 100') +
      change('back', 'position = 7, order_count = 1') +
      change('rent', 'position = 8, order_count = 2'),
    expected: ['flow-chain a#2', 'flow-chain a#3', 'flow-chain b#1', 'flow-chain b#2', 'transfer-time rent'],
  },
  {
    what: 'a deposit deleted',
    sql: () => `delete from transfer where id = ${transfer('deposit')}`,
    expected: [
      'flow-sequence externalDollar#2',
      'wallet-sequence externalDollar',
      'wallet-balance externalDollar',
      'flow-sequence a#2',
      'wallet-sequence a',
      'wallet-balance a',
      'audit-target deposit',
      'log-position rent',
    ],
  },
  {
    what: 'the total of a reversal changed',
    sql: () => change('rest', 'reversed_total = 15.00'),
    expected: ['flow-chain payer#6', 'flow-chain payee#5', 'reversal rest'],
  },
  {
    what: 'a reversal of a later transfer',
    sql: () => change('rest', `reverses_id = ${transfer('otherOrder')}, reversed_total = 15.00`),
    expected: ['flow-chain payer#6', 'flow-chain payee#5', 'reversal rest'],
  },
  {
    what: 'a reversal in the direction of its original',
    sql: () => change('rest', `reverses_id = ${transfer('half')}, reversed_total = 15.00`),
    expected: ['flow-chain payer#6', 'flow-chain payee#5', 'reversal rest'],
  },
  {
    what: 'a reversal of more than its original',
    sql: () => change('rest', `reverses_id = ${transfer('draw')}, reversed_total = 15.00`),
    expected: ['flow-chain payer#6', 'flow-chain payee#5', 'reversal rest'],
  },
  {
    what: 'a transfer in the middle of a batch removed from it',
    sql: () => change('batchedNext', 'batch_id = null'),
    expected: ['flow-chain payer#9', 'flow-chain payee#8', 'batch batchedLast'],
  },
  {
    what: 'the first transfer of a batch removed from it',
    sql: () => change('batched', 'batch_id = null'),
    expected: ['flow-chain payer#8', 'flow-chain payee#7', 'batch batchedNext'],
  },
  {
    what: 'a transfer added to a batch',
    sql: () => change('otherOrder', `batch_id = ${transfer('batched')}`),
    expected: ['flow-chain payer#7', 'flow-chain payee#6', 'batch otherOrder', 'batch batched'],
  },
]

describe('each damage to transfers is reported with its rule and place, and nothing else is', () => testEach(damages))
