import { uuidFromId } from '@workspace-wallet/contract'
import { describe } from 'vitest'
import {
  change,
  changeHold,
  type Damage,
  entry,
  hold,
  strange,
  testEach,
  useBooks,
  wallet,
  workspace,
} from '../../../../../../test/setup/verification/copies.ts'

useBooks()

const damages: Damage[] = [
  {
    what: "a ledger's hold_count changed",
    sql: () => `update ledger set hold_count = 9 where workspace_id = ${workspace('escrow')}`,
    expected: ['ledger-mac escrow', 'ledger-hold-count escrow'],
  },
  {
    what: "a wallet's hold_count changed",
    sql: () => `update wallet set hold_count = 9 where id = ${wallet('payer')}`,
    expected: ['wallet-mac payer', 'wallet-hold-count payer'],
  },
  {
    what: 'less held than the holds reserve',
    sql: () => `update wallet set held = 1 where id = ${wallet('payer')}`,
    signed: 'wallet',
    expected: ['hold-sum payer'],
  },
  {
    what: 'held_until after the first expiry',
    sql: () => `update wallet set held_until = held_until + interval '1 year' where id = ${wallet('payer')}`,
    signed: 'wallet',
    expected: ['hold-sum payer'],
  },
  {
    what: 'more held than the balance',
    sql: () => `update wallet set held = balance + 1 where id = ${wallet('payer')}`,
    signed: 'wallet',
    expected: ['hold-sum payer', 'wallet-held payer'],
  },
  {
    what: 'the remark of a hold changed',
    sql: () => changeHold('open', `remark = 'gift'`),
    expected: ['hold-mac open'],
  },
  {
    what: "a hold's number changed",
    sql: () => changeHold('later', 'number = 9'),
    expected: ['hold-mac later', 'hold-number later'],
  },
  {
    what: "a hold's number among those of its wallet changed",
    sql: () => changeHold('later', 'wallet_number = 9'),
    signed: 'hold',
    expected: ['hold-number later'],
  },
  {
    what: 'two holds with swapped numbers',
    sql: () =>
      changeHold('open', 'number = 100') + changeHold('drawn', 'number = 1') + changeHold('open', 'number = 2'),
    signed: 'hold',
    expected: ['hold-time open'],
  },
  {
    what: 'more reserved than the hold was created with',
    sql: () => `
      ${changeHold('open', 'amount = 11.00, remaining = 11.00')}
      update wallet set held = held + 1 where id = ${wallet('payer')}`,
    signed: 'hold',
    expected: ['wallet-mac payer', 'hold-life open'],
  },
  {
    what: 'a released hold opened again',
    sql: () => `
      ${changeHold('released', `status = 'OPEN', remaining = 3.00`)}
      update wallet set held = held + 3 where id = ${wallet('payer')}`,
    signed: 'hold',
    expected: ['wallet-mac payer', 'hold-life released'],
  },
  {
    what: 'an open hold released without an event',
    sql: () => `
      ${changeHold('open', `status = 'RELEASED', remaining = 0`)}
      update wallet set held = held - 10 where id = ${wallet('payer')}`,
    signed: 'hold',
    expected: ['wallet-mac payer', 'hold-life open'],
  },
  {
    what: 'an expired hold shown as released',
    sql: () => changeHold('expired', `status = 'RELEASED'`),
    signed: 'hold',
    expected: ['hold-life expired'],
  },
  {
    what: 'the time of the end of a hold changed',
    sql: () => changeHold('released', `updated_at = updated_at + interval '1 s'`),
    signed: 'hold',
    expected: ['hold-life released'],
  },
  {
    what: 'a hold that ended twice',
    sql: () => `
      insert into journal select (jsonb_populate_record(j, jsonb_build_object(
          'position', 21, 'order_count', l.order_count, 'created_at', l.last_posted_at))).*
      from journal j join ledger l using (workspace_id) where j.${entry('escrow', 10).replace('position', 'j.position')}`,
    expected: ['journal-chain escrow@21', 'ledger-position escrow', 'journal-head escrow', 'hold-life released'],
  },
  {
    what: 'a hold that expired before its draw',
    sql: () => changeHold('captured', `expires_at = created_at + interval '1 ms'`),
    signed: 'hold',
    expected: ['hold-captured capture'],
  },
  {
    what: 'another captured amount',
    sql: () => changeHold('captured', 'captured = 7.00'),
    signed: 'hold',
    expected: ['hold-captured captured'],
  },
  {
    what: 'a draw detached from its hold',
    sql: () => change('draw', 'hold_id = null, hold_remaining = null'),
    expected: ['flow-chain payer#2', 'flow-chain payee#1', 'hold-captured drawn', 'hold-life drawn'],
  },
  {
    what: 'a transfer that draws more than the hold has',
    sql: () => change('otherOrder', `hold_id = ${hold('open')}, hold_remaining = 0`),
    expected: [
      'flow-chain payer#7',
      'flow-chain payee#6',
      'hold-captured open',
      'hold-captured otherOrder',
      'hold-life open',
    ],
  },
  {
    what: 'a draw from another wallet than that of the hold',
    sql: () => `
      update wallet set hold_count = hold_count - 1 where id = ${wallet('payer')};
      update wallet set hold_count = 1 where id = ${wallet('payee')};
      ${changeHold('captured', `wallet_id = ${wallet('payee')}, wallet_number = 1`)}
      update hold set wallet_number = wallet_number - 1
      where workspace_id = ${workspace('escrow')} and wallet_number > 3 and wallet_id = ${wallet('payer')}`,
    signed: 'hold',
    expected: ['wallet-mac payer', 'wallet-mac payee', 'hold-captured capture', 'hold-life captured'],
  },
  {
    what: 'the rest of a draw changed',
    sql: () => change('draw', 'hold_remaining = 14.00'),
    expected: ['flow-chain payer#2', 'flow-chain payee#1', 'hold-captured draw', 'hold-life drawn'],
  },
  {
    what: 'a hold deleted',
    sql: () => `delete from hold where id = ${hold('later')}`,
    expected: ['ledger-hold-count escrow', 'wallet-hold-count payer', 'hold-sum payer', 'hold-life later'],
  },
  {
    what: 'a hold that core did not create',
    sql: () => `
      insert into hold select (jsonb_populate_record(h, '{
        "id": "${uuidFromId('hold', strange)}", "biz_id": "strange", "number": 7, "wallet_number": 7}')).*
      from hold h where id = ${hold('later')}`,
    expected: [
      'hold-mac strange',
      'ledger-hold-count escrow',
      'wallet-hold-count payer',
      'hold-sum payer',
      'hold-life strange',
    ],
  },
]

describe('each damage to holds is reported with its rule and place, and nothing else is', () => testEach(damages))
