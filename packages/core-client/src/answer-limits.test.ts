import {
  batchCallLimit,
  Decimal,
  maxDeliveries,
  maxEvents,
  maxLeasedWebhooks,
  maxLeaseLength,
  packBatch,
  scopes,
} from '@workspace-wallet/contract'
import { countInMessagePack } from '@workspace-wallet/runtime/count-in-message-pack'
import { expect, test } from 'vitest'
import { defaultAnswerLimits, messagePackLimits } from './answer-limits.ts'

const times = <Value>(length: number, make: (at: number) => Value) => Array.from({ length }, (_, at) => make(at))
/** Fields of one value. */
const fields = (value: unknown, ...names: string[]) => Object.fromEntries(names.map(name => [name, value]))

const id = 'xxx_01h455vb4pex5vsknk084sn02q'
const now = new Date()
const amount = new Decimal('9'.repeat(38))
const addresses = (of: number) => times(256, at => `2001:db8:1234:5678:9abc:def0:${of}:${at}/128`)

const secret = { version: 9, ciphertext: 'c'.repeat(1_024), validUntil: now }
const access = (at: number) => ({
  ...fields(id, 'workspaceId', 'status'),
  ...fields(true, 'workspaceExists', 'ownerIsMember'),
  apiKey: `${id}${at}`,
  expiresAt: now,
  scopes,
  ipAllowlist: addresses(at),
  secrets: [secret, secret],
  place: 0,
})

const keyState = (at: number) => ({
  ...fields('text', 'status', 'secretVersion', 'previousSecretUntil', 'expiresAt', 'deletedAt'),
  scopes,
  ipAllowlist: addresses(at),
})
const auditEntry = (at: number) => ({
  ...fields('t'.repeat(1_024), 'actor', 'action', 'target', 'reason', 'requestId'),
  id: at,
  at: now,
  workspaceId: id,
  before: keyState(at),
  after: keyState(at + 1),
  isGenuine: true,
})

const order = () => ({
  ...fields(id, 'transferId', 'status', 'currency', 'sourceWalletId', 'targetWalletId', 'holdId', 'batchId'),
  ...fields(now, 'createdAt', 'updatedAt', 'completedAt'),
  ...fields('t'.repeat(64), 'bizId', 'reference', 'amount', 'reversesTransferId'),
  remark: '\u{10ffff}'.repeat(256),
  reversedAmount: amount,
})
const invalid = () => ({
  message: 'm'.repeat(20 * 400),
  code: -32_600,
  data: {
    ...fields('text', 'code', 'httpStatus', 'path', 'appError'),
    inputFaults: times(20, () => fields('t'.repeat(200), 'path', 'message')),
  },
})

const delivery = (position: number) => ({
  position,
  body: '\uffff'.repeat(maxLeaseLength / maxLeasedWebhooks / maxDeliveries),
  headers: fields('t'.repeat(100), 'webhook-id', 'webhook-timestamp', 'webhook-signature'),
})
const leased = () => ({
  ...fields('t'.repeat(2_048), 'webhookId', 'workspaceId', 'generation', 'url', 'concurrency', 'leaseMs'),
  deliveries: times(maxDeliveries, delivery),
})

test.each<[string, unknown[]]>([
  ['500 API keys', [{ data: { revisions: [1], keys: times(500, access), unavailable: [] } }]],
  ['a page of 500 audit entries', [{ data: { entries: times(500, auditEntry), next: '1' } }]],
  ['a batch of orders', times(batchCallLimit, () => ({ data: order() }))],
  ['batches of transfers', times(5, () => ({ data: { transfers: times(100, order) } }))],
  ['a batch of invalid calls', times(batchCallLimit, () => ({ error: invalid() }))],
  ['the deliveries of a courier', [{ data: { webhooks: times(maxLeasedWebhooks, leased), revoked: [] } }]],
  ['a page of events', [{ data: { content: 'e'.repeat(maxEvents * 4_096), after: 0, last: maxEvents } }]],
  ['generations of the nonce store', [{ data: fields([1], ...times(32, at => `${'g'.repeat(36)}${at}`)) }]],
  ['objects of many kinds', [{ data: times(500, at => ({ ...fields(at, `a${at}`), after: fields(at, `b${at}`) })) }]],
])('the largest answers of core are within the limits: %s', (_, answers) => {
  const body = packBatch(answers as never)
  expect(body.length).toBeLessThan(defaultAnswerLimits.bytes)
  expect(countInMessagePack(body, messagePackLimits(defaultAnswerLimits))).toBeLessThan(defaultAnswerLimits.values)
})
