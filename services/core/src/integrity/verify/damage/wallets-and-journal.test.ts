import { uuidFromId } from '@workspace-wallet/contract'
import { describe } from 'vitest'
import {
  type Damage,
  entry,
  stray,
  testEach,
  transfer,
  useBooks,
  wallet,
  workspace,
} from '../../../../../../test/setup/verification/copies.ts'

useBooks()

const damages: Damage[] = [
  {
    what: "a wallet's balance changed",
    sql: () => `update wallet set balance = 9999.00 where id = ${wallet('b')}`,
    expected: ['wallet-balance b', 'wallet-mac b'],
  },
  {
    what: "a wallet's order_count changed",
    sql: () => `update wallet set order_count = 3 where id = ${wallet('b')}`,
    expected: ['wallet-order-count b', 'wallet-mac b'],
  },
  {
    what: "a wallet's sequence changed",
    sql: () => `update wallet set sequence = 5 where id = ${wallet('b')}`,
    expected: ['wallet-sequence b', 'wallet-mac b'],
  },
  {
    what: "a wallet's head changed",
    sql: () => `update wallet set head = '\\x01' where id = ${wallet('b')}`,
    expected: ['wallet-head b', 'wallet-mac b'],
  },
  {
    what: "a ledger's order_count changed",
    sql: () => `update ledger set order_count = 9 where workspace_id = ${workspace('books')}`,
    expected: ['ledger-mac books', 'ledger-order-count books'],
  },
  {
    what: "a ledger's wallet_count changed",
    sql: () => `update ledger set wallet_count = 9 where workspace_id = ${workspace('books')}`,
    expected: ['ledger-mac books', 'ledger-wallet-count books'],
  },
  {
    what: "a wallet's number changed",
    sql: () => `update wallet set number = 9 where id = ${wallet('yen')}`,
    expected: ['wallet-mac yen', 'wallet-number yen'],
  },
  {
    what: "a ledger's last_posted_at changed",
    sql: () =>
      `update ledger set last_posted_at = last_posted_at - interval '1 hour' where workspace_id = ${workspace('others')}`,
    expected: ['ledger-time externalOfOthers', 'ledger-time x', 'ledger-mac others', 'ledger-time others'],
  },
  {
    what: "a wallet's currency changed",
    sql: () => `update wallet set currency = 'EUR' where id = ${wallet('c')}`,
    expected: [
      'flow-currency c#1',
      'flow-currency c#2',
      'wallet-mac c',
      'workspace-sum books USD',
      'workspace-sum books EUR',
      'wallet-audit c',
    ],
  },
  {
    what: 'an unknown currency',
    sql: () => `update wallet set currency = 'DUCATS' where id = ${wallet('y')}`,
    expected: ['flow-currency y', 'wallet-mac y', 'wallet-audit y', 'wallet-external others DUCATS'],
  },
  {
    what: 'a wallet deleted',
    sql: () => `delete from wallet where id = ${wallet('c')}`,
    expected: [
      'flow-wallet c#1',
      'workspace-sum books USD',
      'workspace-sum books',
      'audit-target c',
      'wallet-number euro',
      'ledger-wallet-count books',
      'wallet-journal c',
    ],
  },
  {
    what: 'an empty wallet deleted',
    sql: () => `delete from wallet where id = ${wallet('y')}`,
    expected: ['audit-target y', 'ledger-wallet-count others', 'wallet-journal y'],
  },
  {
    what: 'a second EXTERNAL wallet',
    sql: () => `
      drop index wallet_external;
      insert into wallet (workspace_id, id, kind, name, currency, status, created_at, updated_at, revision, mac)
      select workspace_id, '${uuidFromId('wallet', stray)}', kind, name, currency, status, created_at, updated_at,
        revision, mac
      from wallet where id = ${wallet('externalDollar')}`,
    expected: ['database-object index public.wallet_external', 'wallet-mac stray', 'wallet-external books USD'],
  },
  {
    what: "a wallet's name changed",
    sql: () => `update wallet set name = 'Savings' where id = ${wallet('b')}`,
    expected: ['wallet-mac b', 'wallet-audit b'],
  },
  {
    what: 'a wallet unfrozen',
    sql: () => `update wallet set status = 'ACTIVE', frozen_by = null where id = ${wallet('c')}`,
    expected: ['wallet-mac c', 'wallet-audit c', 'wallet-journal c'],
  },
  {
    what: 'two wallets with swapped numbers',
    sql: () => `
      update wallet set number = 100 where id = ${wallet('a')};
      update wallet set number = 1 where id = ${wallet('b')};
      update wallet set number = 2 where id = ${wallet('a')}`,
    expected: ['wallet-mac a', 'wallet-mac b', 'wallet-time a'],
  },
  {
    what: 'a ledger deleted',
    sql: () => `delete from ledger where workspace_id = ${workspace('others')}`,
    expected: ['workspace-ledger others'],
  },
  {
    what: 'the time at which a wallet was created changed',
    sql: () => `update wallet set created_at = created_at - interval '1 ms' where id = ${wallet('a')}`,
    signed: 'wallet',
    expected: ['wallet-journal a'],
  },
  {
    what: 'a journal entry deleted',
    sql: () => `delete from journal where ${entry('escrow', 4)}`,
    expected: ['journal-chain escrow@5', 'log-position escrow@5', 'hold-life open'],
  },
  {
    what: 'the last journal entry deleted',
    sql: () => `delete from journal where ${entry('escrow', 20)}`,
    expected: ['ledger-position escrow', 'journal-head escrow', 'hold-life later'],
  },
  {
    what: 'a journal entry that core did not write',
    sql: () => `
      insert into journal select (jsonb_populate_record(j, '{"position": 16}')).* from journal j where ${entry('books', 15)}`,
    expected: ['journal-chain books@16', 'ledger-position books'],
  },
  {
    what: 'the actor of a journal entry changed',
    sql: () => `update journal set actor = 'nobody' where ${entry('escrow', 10)}`,
    expected: ['journal-chain escrow@10'],
  },
  {
    what: 'the MAC of a journal entry changed',
    sql: () => `update journal set mac = sha256('x') where ${entry('escrow', 10)}`,
    expected: ['journal-chain escrow@10'],
  },
  {
    what: 'the MAC of the last journal entry changed',
    sql: () => `update journal set mac = sha256('x') where ${entry('books', 15)}`,
    expected: ['journal-chain books@15', 'journal-head books'],
  },
  {
    what: 'a journal entry with the UUID of a transfer',
    sql: () => `update journal set id = ${transfer('last')} where ${entry('books', 15)}`,
    expected: ['journal-chain books@15', 'journal-id books@15'],
  },
  {
    what: 'the time of a journal entry changed',
    sql: () => `update journal set created_at = created_at - interval '1 hour' where ${entry('books', 15)}`,
    expected: ['journal-chain books@15', 'journal-time books@15'],
  },
  {
    what: 'the order_count of a journal entry changed',
    sql: () => `update journal set order_count = 9 where ${entry('escrow', 10)}`,
    expected: ['journal-chain escrow@10', 'journal-order-count escrow@10'],
  },
  {
    what: "a ledger's position changed",
    sql: () => `update ledger set position = 99 where workspace_id = ${workspace('books')}`,
    expected: ['ledger-mac books', 'ledger-position books'],
  },
  {
    what: "a ledger's journal_head changed",
    sql: () => `update ledger set journal_head = '' where workspace_id = ${workspace('books')}`,
    expected: ['ledger-mac books', 'journal-head books'],
  },
]

describe('each damage to wallets, ledgers and the journal is reported with its rule and place, and nothing else is', () =>
  testEach(damages))
