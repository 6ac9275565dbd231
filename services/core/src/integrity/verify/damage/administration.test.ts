import { describe } from 'vitest'
import { schema } from '../../../../../../test/setup/database.ts'
import {
  books,
  type Damage,
  ofWallet,
  reset,
  testEach,
  useBooks,
  wallet,
  workspace,
} from '../../../../../../test/setup/verification/copies.ts'

useBooks()

const damages: Damage[] = [
  {
    what: 'a closed ledger opened',
    sql: () => `update ledger set status = 'OPEN' where status = 'CLOSED'`,
    expected: ['ledger-mac deleted', 'workspace-audit deleted'],
  },
  {
    what: 'a removed member restored',
    sql: () => `update member set removed_at = null where user_id = 'gone'`,
    expected: ['member-mac gone', 'member-audit gone'],
  },
  {
    what: 'a member that core did not add',
    sql: () => `
      insert into member select workspace_id, 'mallory', created_at, null, 1, mac from member where user_id = 'owner'`,
    expected: ['member-mac mallory', 'member-audit mallory'],
  },
  {
    what: 'a move that core did not write, with the MAC of another row',
    sql: () => `
      insert into workspace_move (workspace_id, generation, state, from_place, to_place, at, access_revision, revision, mac)
      select id, 1, 'LEFT', 0, 1, created_at, 0, 1, mac from workspace where id = ${workspace('books')}`,
    expected: ['move-mac books'],
  },
  {
    what: 'a key with more scopes',
    sql: () => `update api_key set scopes = array_append(scopes, 'wallet:write')`,
    expected: ['key-mac key', 'key-audit key'],
  },
  {
    what: 'the revision of a key changed',
    sql: () => `update api_key set revision = revision + 1`,
    expected: ['key-mac key'],
  },
  {
    what: 'an action changed in the audit',
    sql: () => `update audit set actor = 'admin:nobody' where action = 'wallet.freeze'`,
    expected: ['audit-chain wallet.freeze', 'wallet-audit c'],
  },
  {
    what: 'the time of an action changed',
    sql: () => `update audit set at = at - interval '1 day' where action = 'wallet.freeze'`,
    expected: ['audit-chain wallet.freeze', 'wallet-audit c'],
  },
  {
    what: 'an action deleted from the audit',
    sql: () => `delete from audit where action = 'wallet.withdraw' and workspace_id = ${workspace('books')}`,
    // The action after it no longer continues a stored one.
    expected: ['audit-position wallet.deposit', 'transfer-audit withdrawal', 'transfer-audit euroDeposit'],
  },
  {
    what: 'the last action deleted from the audit',
    sql: () => `delete from audit where action = 'wallet.freeze'`,
    expected: ['wallet-audit c', 'audit-head books'],
  },
  {
    what: 'an action on no workspace changed',
    sql: () => `update audit set target = 'x' where workspace_id is null`,
    expected: ['audit-chain ledger.checkpoint'],
  },
  {
    what: 'an action with an ID that JavaScript cannot represent exactly',
    sql: () => `
      alter table audit alter id drop identity, drop constraint audit_id_check;
      update audit set id = 9007199254740993 where action = 'wallet.withdraw' and workspace_id = ${workspace('books')}`,
    expected: [
      `database-object column ${schema}.audit.id`,
      `database-object constraint ${schema}.audit.audit_id_check`,
      `database-object relation ${schema}.audit_id_seq`,
      'audit-position wallet.withdraw',
      'audit-position wallet.deposit',
    ],
  },
  {
    what: 'two actions with swapped IDs',
    sql: () => `
      alter table audit alter id drop identity, drop constraint audit_id_check;
      update audit set id = -1 where action = 'wallet.withdraw' and workspace_id = ${workspace('books')};
      update audit set id = 9999 where action = 'wallet.freeze'`,
    expected: [
      `database-object column ${schema}.audit.id`,
      `database-object constraint ${schema}.audit.audit_id_check`,
      `database-object relation ${schema}.audit_id_seq`,
      'audit-position wallet.withdraw',
    ],
  },
  {
    what: 'a frozen wallet reset to its genuine earlier row',
    sql: () => reset('wallet', `id = ${wallet('c')}`),
    expected: ['wallet-audit c', 'wallet-journal c'],
  },
  {
    what: 'a removed member reset to the genuine earlier row',
    sql: () => reset('member', `user_id = 'gone'`),
    expected: ['member-audit gone'],
  },
  {
    what: 'a key reset to its genuine row before a rotation',
    sql: () => reset('api_key'),
    expected: ['key-audit key'],
  },
  {
    what: 'a deleted workspace reset to its genuine earlier rows',
    sql: () =>
      reset('workspace', `id = ${workspace('deleted')}`) + reset('ledger', `workspace_id = ${workspace('deleted')}`),
    expected: ['workspace-audit deleted'],
  },
  {
    what: 'the ledger of a deleted workspace reset to its genuine earlier row',
    sql: () => reset('ledger', `workspace_id = ${workspace('deleted')}`),
    expected: ['workspace-audit deleted'],
  },
  {
    what: 'a key deleted',
    sql: () => 'delete from api_key',
    expected: ['audit-target key'],
  },
  {
    what: 'a member deleted',
    sql: () => `delete from member where user_id = 'gone'`,
    expected: ['audit-target gone'],
  },
  {
    what: 'a key that core did not create',
    sql: () => `update kept.api_key set id = gen_random_uuid(); insert into api_key select * from kept.api_key`,
    expected: ['key-mac key', 'key-audit key'],
  },
  {
    what: 'another amount of a deposit in the audit',
    sql: () => `
      update audit set after = replace(after::text, '1000.00', '1.00')::json
      where target = '${books.wallets.a}' and action = 'wallet.deposit'`,
    expected: ['audit-chain wallet.deposit', 'transfer-audit deposit'],
  },
  {
    what: 'a workspace deleted',
    sql: () => `delete from workspace where id = ${workspace('others')}`,
    expected: ['audit-target others', 'workspace-ledger others'],
  },
  {
    what: 'the URL of a webhook changed',
    sql: () => `update webhook set url = 'https://attacker.example/' where biz_id = 'hook'`,
    expected: ['webhook-mac webhook', 'webhook-audit webhook'],
  },
  {
    what: 'the URL of a webhook changed, and signed with the stolen chain key',
    sql: () => `update webhook set url = 'https://attacker.example/' where biz_id = 'hook'`,
    signed: 'webhook',
    expected: ['webhook-audit webhook'],
  },
  {
    what: 'the secret of a webhook changed',
    sql: () => `update webhook set previous_secret = secret where biz_id = 'hook'`,
    expected: ['webhook-mac webhook'],
  },
  {
    what: 'a webhook reset to its row before a rotation',
    sql: () => reset('webhook', `biz_id = 'hook'`),
    expected: ['webhook-audit webhook'],
  },
  {
    what: 'a deleted webhook restored',
    sql: () => reset('webhook', `biz_id = 'deleted'`),
    expected: ['webhook-audit webhook'],
  },
  {
    what: 'a webhook deleted from the table',
    sql: () => `delete from webhook where biz_id = 'hook'`,
    expected: ['audit-target webhook'],
  },
  {
    what: 'a webhook ahead of the log',
    sql: () => 'update webhook set position = 1000',
    expected: ['webhook-position webhook'],
  },
  {
    what: 'a webhook whose next attempt is far away',
    sql: () => `update webhook set next_attempt_at = now() + interval '1 day' where biz_id = 'hook'`,
    expected: ['webhook-attempt webhook'],
  },
  {
    what: 'a webhook whose lease has no end',
    sql: () => `update webhook set leased_until = '9999-12-31' where biz_id = 'hook'`,
    expected: ['webhook-attempt webhook'],
  },
  {
    what: "a ledger's limit_count changed",
    sql: () => `update ledger set limit_count = 0 where workspace_id = ${workspace('others')}`,
    expected: ['ledger-mac others', 'ledger-limit-count others'],
  },
  {
    what: 'a limit raised',
    sql: () => `update spending_limit set per_day = 1000 where ${ofWallet}`,
    expected: ['limit-mac others USD', 'limit-audit x'],
  },
  {
    what: 'a limit raised, and signed with the stolen chain key',
    sql: () => `update spending_limit set per_day = 1000 where ${ofWallet}`,
    signed: 'spending_limit',
    expected: ['limit-audit x'],
  },
  {
    what: 'a limit reset to its genuine earlier row',
    sql: () => reset('spending_limit', `not ${ofWallet}`),
    expected: ['limit-audit key'],
  },
  {
    what: 'a limit deleted',
    sql: () => `delete from spending_limit where ${ofWallet}`,
    expected: ['audit-target x', 'ledger-limit-count others'],
  },
  {
    what: 'a limit moved to another wallet',
    sql: () => `update spending_limit set subject = 'wallet:' || ${wallet('y')} where ${ofWallet}`,
    expected: ['limit-mac others USD', 'audit-target x', 'limit-audit y'],
  },
  {
    what: 'less counted by a limit than was spent',
    sql: () => `update spending_limit set spent = 4 where ${ofWallet}`,
    signed: 'spending_limit',
    expected: ['limit-spent others USD'],
  },
  {
    what: 'counted by a limit on an earlier day',
    sql: () => `update spending_limit set day = day - 1 where ${ofWallet}`,
    signed: 'spending_limit',
    expected: ['limit-spent others USD'],
  },
  {
    what: 'counted by a limit since an earlier transfer',
    sql: () => `update spending_limit set counted_from = counted_from - 1 where ${ofWallet}`,
    signed: 'spending_limit',
    expected: ['limit-audit x'],
  },
  {
    what: 'a deleted workspace restored, and another one renamed',
    sql: () =>
      `update workspace set deleted_at = null where name = 'Deleted'; update workspace set name = 'X' where id = ${workspace('books')}`,
    expected: ['workspace-mac books', 'workspace-mac deleted', 'workspace-audit books', 'workspace-audit deleted'],
  },
]

describe('each damage to workspaces, keys, the audit, limits and webhooks is reported with its rule and place, and nothing else is', () =>
  testEach(damages))
