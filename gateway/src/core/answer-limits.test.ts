import { batchCallLimit, Decimal, maxEvents, maxPageSize, packBatch, scopes } from '@workspace-wallet/contract'
import { countInMessagePack } from '@workspace-wallet/runtime/count-in-message-pack'
import { expect, test } from 'vitest'
import { answerLimits, keysPerLookup } from './answer-limits.ts'

const times = <Value>(length: number, make: (at: number) => Value) => Array.from({ length }, (_, at) => make(at))
/** Fields of one value. */
const fields = (value: unknown, ...names: string[]) => Object.fromEntries(names.map(name => [name, value]))

const id = 'xxx_01h455vb4pex5vsknk084sn02q'
const secret = { version: 9, ciphertext: 'c'.repeat(1_024), validUntil: new Date() }
const access = (of: number) => ({
  ...fields(id, 'workspaceId', 'status', 'workspaceExists', 'ownerIsMember', 'expiresAt', 'place'),
  apiKey: `${id}${of}`,
  scopes,
  ipAllowlist: times(256, at => `2001:db8:1234:5678:9abc:def0:${of}:${at}/128`),
  secrets: [secret, secret],
})
const order = () => ({
  ...fields(id, 'transferId', 'status', 'currency', 'sourceWalletId', 'targetWalletId', 'holdId', 'batchId'),
  ...fields(new Date(), 'createdAt', 'updatedAt', 'completedAt'),
  ...fields('t'.repeat(64), 'bizId', 'reference', 'amount', 'reversesTransferId'),
  remark: '\u{10ffff}'.repeat(256),
  reversedAmount: new Decimal('9'.repeat(38)),
})
/** The most that a transfer takes in the log, with a remark of quotation marks and characters outside the basic plane. */
const eventLength = 4_096

test.each<[string, unknown[]]>([
  ['a look-up of API keys', [{ data: { revisions: [1], keys: times(keysPerLookup, access), unavailable: [] } }]],
  ['a batch of orders', times(batchCallLimit, () => ({ data: order() }))],
  ['batches of transfers', times(5, () => ({ data: { transfers: times(100, order) } }))],
  ['a page of orders', [{ data: { content: times(maxPageSize, order), page: fields(1, 'size', 'number') } }]],
  ['a page of events', [{ data: { content: 'e'.repeat(maxEvents * eventLength), after: 0, last: maxEvents } }]],
  ['changes of keys', [{ data: { places: times(30, () => ({ complete: true, apiKeys: times(1_000, () => id) })) } }]],
])('the largest answers of core to gateways are within half of the limits: %s', (_, answers) => {
  const body = packBatch(answers as never)
  const { bytes, values } = answerLimits
  expect(body.length).toBeLessThan(bytes / 2)
  expect(
    countInMessagePack(body, { values, depth: 32, records: 256, recordKeys: 64, recordKeyBytes: 64 }),
  ).toBeLessThan(values / 2)
})
