import { Decimal, packBatch, unpackBatch } from '@workspace-wallet/contract'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bodyLimits, maxDepth } from './body-limits.ts'
import { countInJson } from './count-in-json.ts'
import { countInMessagePack } from './count-in-message-pack.ts'

const limit = 1_000

const pack = (value: unknown) => packBatch(value as never)
const count = (body: Uint8Array, maxElements = limit) => countInMessagePack(body, maxElements)

/** The values in a decoded value, without the keys of objects. */
function valuesIn(value: unknown): number {
  const isLeaf = typeof value !== 'object' || value === null || value instanceof Date || Decimal.isDecimal(value)
  return isLeaf ? 1 : Object.values(value).reduce((sum: number, each) => sum + valuesIn(each), 1)
}

const leaf = fc.oneof(
  fc.string(),
  fc.string({ unit: 'grapheme', maxLength: 400 }),
  fc.integer(),
  fc.maxSafeInteger(),
  fc.double(),
  fc.boolean(),
  fc.date(),
  fc.constantFrom(null, undefined, new Decimal('-1.50'), new Decimal('9'.repeat(100))),
)
const tree = fc.letrec(tie => ({
  value: fc.oneof({ depthSize: 'small' }, leaf, fc.array(tie('value')), fc.dictionary(fc.string(), tie('value'))),
})).value
/** Equal objects, which MessagePack defines as records. */
const records = fc.array(fc.record({ a: leaf, b: leaf, c: fc.record({ d: leaf }) }), { maxLength: 50 })

describe('MessagePack', () => {
  test('everything that packBatch writes is counted, with at least the values that are decoded', () => {
    fc.assert(
      fc.property(fc.oneof(tree, records, fc.tuple(records, tree, records)), value => {
        const body = pack(value)
        expect(count(body, 1_000_000)).toBeGreaterThanOrEqual(valuesIn(unpackBatch(body)))
      }),
    )
  })

  test('whatever bytes a caller sends, no more values are decoded than were counted', () => {
    const changes = fc.array(fc.tuple(fc.nat(), fc.oneof(fc.nat(255), fc.constantFrom(0x72, 0xd4, 0x80, 0x90, 0xdd))))
    fc.assert(
      fc.property(fc.oneof(records, tree), changes, fc.nat(), (value, changed, end) => {
        const packed = Buffer.from(pack(value))
        for (const [at, byte] of changed) packed[at % packed.length] = byte
        const body = packed.subarray(0, packed.length - (end % 3))
        const counted = attempt(() => count(body))
        if (counted === null) return
        const decoded = attempt(() => unpackBatch(body))
        if (decoded !== null) expect(valuesIn(decoded)).toBeLessThanOrEqual(counted)
      }),
      { numRuns: 2_000 },
    )
  })

  const bytes = (...parts: (number | string | Uint8Array)[]) =>
    Buffer.concat(parts.map(part => (typeof part === 'number' ? Buffer.from([part]) : Buffer.from(part))))
  const records256 = Array.from({ length: 257 }, (_, at) => bytes(0xd4, 0x72, 0x40 + (at % 64), 0x91, 0xa1, 'a', 1))

  test.each([
    ['too many empty maps', bytes(0xdd, 0, 0, 4, 0, Buffer.alloc(1024, 0x80))],
    ['too many keys', bytes(0xde, 2, 0, Buffer.alloc(1024, 0xa0))],
    ['more values than any body has, which do not follow', bytes(0xdf, 0xff, 0xff, 0xff, 0xff)],
    ['values too deep in others', Buffer.alloc(maxDepth + 2, 0x91)],
    ['a record with too many keys', bytes(0xd4, 0x72, 0x40, 0xdc, 0, 65, Buffer.alloc(130, 0xa0))],
    ['too many records', bytes(0xdc, 1, 1, ...records256)],
  ])('is too large: %s', (_, body) => {
    expect(() => count(body)).toThrow('at most 1000 values')
  })

  test.each([
    ['nothing', bytes()],
    ['a value that is cut off', bytes(0xdb, 0, 0, 0, 9, 'text')],
    ['two values', bytes(1, 1)],
    ['bytes', bytes(0xc4, 1, 1)],
    ['a reference, which could make a cycle', bytes(0xd6, 0x69, 0, 0, 0, 1, 0x91, 0xd6, 0x70, 0, 0, 0, 1)],
    ['a large integer', bytes(0xc7, 9, 0x42, Buffer.alloc(9, 1))],
    ['a regular expression', bytes(0xd4, 0x78, 0, 0x92, 0xa1, 'a', 0xa0)],
    ['a typed array', bytes(0xd5, 0x74, 1, 1)],
    ['strings in a bundle', bytes(0xd6, 0x62, 0, 0, 0, 5, 0xc1, 1, 0xa1, 'a', 0xa0)],
    ['a record of two bytes', bytes(0xd5, 0x72, 0x40, 0, 0x91, 0xa1, 'a', 1)],
    ['a record whose key is no string', bytes(0xd4, 0x72, 0x40, 0x91, 0x91, 1, 1)],
  ])('is not a batch: %s', (_, body) => {
    expect(() => count(body)).toThrow('MessagePack')
  })
})

describe('JSON', () => {
  test('every JSON text is counted, with at least the values that are parsed', () => {
    fc.assert(
      fc.property(fc.json(), text => {
        expect(countInJson(Buffer.from(text), 1_000_000)).toBeGreaterThanOrEqual(valuesIn(JSON.parse(text)))
      }),
    )
  })

  test.each([
    ['too many empty objects', `[${'{},'.repeat(600)}{}]`],
    ['too many numbers', `[${'1,'.repeat(1_000)}1]`],
    ['too many keys', `{${'"a":1,'.repeat(600)}"a":1}`],
    ['values too deep in others', '['.repeat(maxDepth + 1)],
  ])('is too large: %s', (_, text) => {
    expect(() => countInJson(Buffer.from(text), limit)).toThrow('at most 1000 values')
  })

  test('brackets and commas in strings are no values', () => {
    const text = JSON.stringify(`${'[{,:'.repeat(1_000)}"\\`.repeat(2))
    expect(countInJson(Buffer.from(text), limit)).toBe(1)
  })
})

test('the largest calls of every role are within its limits', () => {
  const id = 'x_01h455vb4pex5vsknk084sn02q'
  const hex = 'b'.repeat(256)
  const times = <Value>(length: number, value: Value) => Array.from({ length }, () => value)
  const create = {
    workspaceId: id,
    caller: { apiKey: id, requestId: `req_${hex.slice(0, 36)}`, address: '2001:db8::1' },
    order: { sourceWalletId: id, targetWalletId: id, amount: '1.00', currency: 'USD', bizId: id, remark: hex },
  }
  const part = {
    chains: times(500, { workspaceId: id, walletId: id, sequence: 2 ** 40, head: hex, revision: 2 ** 40 }),
    rows: times(500, { kind: 'limit', workspaceId: id, id: hex.slice(0, 128), revision: 2 ** 40 }),
    logs: times(500, { workspaceId: id, position: 2 ** 40, head: hex.slice(0, 64) }),
    audits: times(500, { workspaceId: id, position: 2 ** 40, head: hex.slice(0, 64) }),
  }
  for (const [role, calls] of [
    ['gateway', times(512, { path: 'transfers.create', type: 'mutation', input: create })],
    ['admin', [{ path: 'ledger.uploadCheckpoint', type: 'mutation', input: { uploadId: id, part } }]],
    ['funding', times(512, { path: 'wallets.balance', type: 'query', input: { ...create, order: id } })],
    [
      'courier',
      [
        {
          path: 'courier.lease',
          type: 'mutation',
          input: { held: times(1024, { webhookId: id, generation: 2 ** 31 }) },
        },
      ],
    ],
  ] as const) {
    const limits = bodyLimits[role]
    const [packed, json] = [pack(calls), Buffer.from(JSON.stringify(calls))]
    expect(packed.length, role).toBeLessThanOrEqual(limits.bytes)
    expect(count(packed, limits.elements), role).toBeLessThanOrEqual(limits.elements)
    // Other encoders name the keys of each object.
    expect(json.length, role).toBeLessThanOrEqual(limits.bytes)
    expect(countInJson(json, limits.elements), role).toBeLessThanOrEqual(limits.elements)
  }
})

function attempt<Value>(run: () => Value): Value | null {
  try {
    return run()
  } catch {
    return null
  }
}
