import { Decimal, packBatch, unpackBatch } from '@workspace-wallet/contract'
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { countInMessagePack, TooManyValues } from './count-in-message-pack.ts'

const limits = { values: 1_000, depth: 32, records: 256, recordKeys: 64, recordKeyBytes: 31 }

const pack = (value: unknown) => packBatch(value as never)
const count = (body: Uint8Array, changes: Partial<typeof limits> = {}) =>
  countInMessagePack(body, { ...limits, ...changes })

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
  value: fc.oneof(
    { depthSize: 'small' },
    leaf,
    fc.array(tie('value')),
    fc.dictionary(fc.string({ maxLength: 50 }), tie('value')),
  ),
})).value
/** Equal objects, which MessagePack defines as records. */
const records = fc.array(fc.record({ a: leaf, b: leaf, c: fc.record({ d: leaf }) }), { maxLength: 50 })

/** For bodies with long keys. */
const wide = { values: 1_000_000, records: 10_000, recordKeyBytes: 255 }

test('everything that packBatch writes is counted, with at least the values that are decoded', () => {
  fc.assert(
    fc.property(fc.oneof(tree, records, fc.tuple(records, tree, records)), value => {
      const body = pack(value)
      expect(count(body, wide)).toBeGreaterThanOrEqual(valuesIn(unpackBatch(body)))
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
      const counted = attempt(() => count(body, wide))
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
  ['values too deep in others', Buffer.alloc(limits.depth + 2, 0x91)],
  ['a record with too many keys', bytes(0xd4, 0x72, 0x40, 0xdc, 0, 65, Buffer.alloc(130, 0xa0))],
  ['too many records', bytes(0xdc, 1, 1, ...records256)],
])('is too large: %s', (_, body) => {
  expect(() => count(body)).toThrow(TooManyValues)
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
  ['a record with a long key', bytes(0xd4, 0x72, 0x40, 0x91, 0xd9, 32, 'a'.repeat(32), 1)],
])('is not counted: %s', (_, body) => {
  expect(attempt(() => count(body))).toBe(null)
  expect(() => count(body)).not.toThrow(TooManyValues)
})

function attempt<Value>(run: () => Value): Value | null {
  try {
    return run()
  } catch {
    return null
  }
}
