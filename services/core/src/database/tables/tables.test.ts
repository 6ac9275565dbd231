import { createSecretKey } from 'node:crypto'
import { Decimal, type Uuid } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { apiKeyMac } from './api-key.ts'
import { type AuditRow, auditMac } from './audit.ts'
import { type HoldRow, holdMac } from './hold.ts'
import { type LedgerRow, ledgerMac } from './ledger.ts'
import { memberMac } from './member.ts'
import { operatorMac } from './operator.ts'
import { limitMac } from './spending-limit.ts'
import { type WalletRow, walletMac } from './wallet.ts'
import { webhookBizIdMac, webhookMac } from './webhook.ts'
import { workspaceMac } from './workspace.ts'

/** Another order of columns, or another form of a value, would make every stored row count as modified. */
const key = createSecretKey(Buffer.alloc(32, 7))
const uuid = (digit: number) => `00000000-0000-7000-8000-00000000000${digit}` as Uuid<never>
const at = (minute: number) => new Date(Date.UTC(2026, 10, 23, 12, minute, 0, 5))

const wallet: WalletRow = {
  workspaceId: uuid(1),
  id: uuid(2),
  number: 3,
  kind: 'CUSTOMER',
  bizId: 'biz "1"',
  name: 'Größe',
  currency: 'USD',
  status: 'FROZEN',
  frozenBy: 'OPERATOR',
  balance: new Decimal('100.50'),
  held: new Decimal('0.25'),
  heldUntil: at(1),
  sequence: 4,
  orderCount: 5,
  holdCount: 6,
  head: Buffer.from('01ff', 'hex'),
  createdAt: at(2),
  updatedAt: at(3),
  revision: 7,
}
const ledger: LedgerRow = {
  workspaceId: uuid(1),
  status: 'OPEN',
  walletCount: 1,
  orderCount: 2,
  holdCount: 3,
  limitCount: 4,
  position: 5,
  journalHead: Buffer.from('ab', 'hex'),
  lastPostedAt: at(4),
  haltReason: null,
  revision: 6,
}
const hold: HoldRow = {
  workspaceId: uuid(1),
  id: uuid(3),
  number: 1,
  walletNumber: 2,
  bizId: 'h',
  walletId: uuid(2),
  currency: 'USD',
  amount: '5.00',
  captured: new Decimal('1.00'),
  remaining: new Decimal('4.00'),
  status: 'OPEN',
  expiresAt: at(5),
  reference: null,
  remark: 'for the trip',
  createdAt: at(6),
  updatedAt: at(7),
  revision: 2,
}
const limit = {
  workspaceId: uuid(1),
  subject: 'key:ak_1',
  currency: 'USD',
  perTransfer: new Decimal('10.10'),
  perDay: null,
  day: '2026-11-23',
  spent: new Decimal('7'),
  countedFrom: 8,
  createdAt: at(1),
  updatedAt: at(2),
  revision: 3,
}
const workspace = {
  id: uuid(1),
  name: 'Test',
  createdIn: 3,
  createdAt: at(1),
  updatedAt: at(2),
  deletedAt: null,
  revision: 1,
}
const member = { workspaceId: uuid(1), userId: 'eve', createdAt: at(1), removedAt: at(2), revision: 2 }
const secrets = { secret: 's', secretVersion: 2, previousSecret: 'p', previousSecretUntil: at(8) }
const times = { deletedAt: null, createdAt: at(1), updatedAt: at(2), revision: 9 }
const apiKey = {
  ...{
    id: uuid(4),
    workspaceId: uuid(1),
    ownerUserId: 'eve',
    name: 'Key',
    status: 'ACTIVE' as const,
    ...secrets,
    ...times,
  },
  ...{ scopes: ['transfer:create', 'wallet:read'] as const, ipAllowlist: [], expiresAt: at(9) },
}
const operator = {
  ...{
    name: 'ann',
    role: 'admin' as const,
    status: 'ACTIVE' as const,
    tokenHash: Buffer.from('0a0b', 'hex'),
    tokenVersion: 1,
  },
  ...{ expiresAt: null, createdAt: at(1), updatedAt: at(2), revision: 1 },
}
const webhook = {
  ...{ id: uuid(5), workspaceId: uuid(1), bizId: 'b', bizIdMac: Buffer.from('0c', 'hex'), url: 'https://a.example/' },
  ...{ types: ['hold.created'] as const, concurrency: 2, status: 'PAUSED' as const, ...secrets, ...times },
}

const action: AuditRow = {
  workspaceId: uuid(1),
  position: 3,
  at: at(1),
  actor: 'operator:ann',
  action: 'key.create',
  target: 'ak_1',
  before: null,
  after: '{"name":"Größe"}',
  reason: 'rotation',
  requestId: 'req_1',
}

// Computed when the columns were still written out in each MAC.
test.each([
  ['wallet', walletMac(key, wallet), '00381448640aed9a1f7e9e0f6cb15ea02b074c0ff1d3c286abf0edbd12b28566'],
  ['ledger', ledgerMac(key, ledger), 'b24898b24d469985254bfb98c00cb0905cf26da12311787d0e3072371538a0f5'],
  ['hold', holdMac(key, hold), '3b45412723cfb730ffc88a50283997bbfad30a26b1c007d87cfee7f397dbff6d'],
  ['spending limit', limitMac(key, limit), 'd977ab21fbf77eff6f791c3083ac6b0f538f382182d08f101169c806a2e1ecc1'],
  ['workspace', workspaceMac(key, workspace), '95a92f7362ce40ab0c8192a37793c918572ba0a9f544b5dc4c475e34f4d39805'],
  ['member', memberMac(key, member), '887ad6e3dd183584916a69a3f93a45a66a15e912c2d4f285b9b129d0d1dd48c1'],
  ['API key', apiKeyMac(key, apiKey), 'a480f6d1559cf2688e3cd04fe83745f0645a6f9a2c7d96dcff00e05bdf9a47a3'],
  ['operator', operatorMac(key, operator), '34c9beb30d3d7a1fce10aa052a02861a18fe6b374ea593c1f19fec72a6d10933'],
  ['webhook', webhookMac(key, webhook), 'd68107c5bb53d8fa56e72533e7b7dcd61b10fc78e9eef9985cfc4d1ed4e2c0fb'],
  [
    'action in the audit',
    auditMac(key, action, Buffer.from('01ff', 'hex')),
    '5baf2eaa3a742e5d7476c673122f639048809c4ba42a517b27b90c34253e98e1',
  ],
  [
    'first action on no workspace',
    auditMac(key, { ...action, workspaceId: null, reason: null, requestId: null }, Buffer.alloc(0)),
    'b179209c18f8b5bd4051ffa30a46df80d31698acad24e5ff5d1336df635fe2bc',
  ],
  [
    'bizId of a webhook',
    webhookBizIdMac(key, uuid(1), 'b'),
    '14ea35e4957db9a2b3be18c82ac67dd049fd61fa74d5cc3bb4cded94851c34aa',
  ],
])('the MAC of a %s is the same as ever', (_, mac, expected) => {
  expect(mac.toString('hex')).toBe(expected)
})
