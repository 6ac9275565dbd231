/**
 * What a MessagePack body may have at most: values, keys of objects included, and values within values. The rest is about records:
 * `packBatch` names the keys of equal objects once, in the definition of a record, for which the reader compiles code.
 */
export type MessagePackLimits = {
  values: number
  depth: number
  /** Definitions of records. */
  records: number
  /** Keys of a record. */
  recordKeys: number
  /** Length of a key of a record. At most 255. */
  recordKeyBytes: number
}

/** A body has more than its limits allow. */
export class TooManyValues extends Error {
  override readonly name = 'TooManyValues'
}

/** The type of the extension that defines an ID for the keys of a record. A byte from `firstRecord` on stands for an object with them. */
const recordType = 0x72
const firstRecord = 0x40

const undefinedType = 0
const decimalType = 1
const dateType = 0xff

/** By the first byte of a value of a fixed size: how many bytes follow. -1 for all others. */
const fixedBytes = new Int8Array(256).fill(-1)
for (let first = 0; first <= 0x7f; first++) fixedBytes[first] = 0 // 0 to 127
for (let first = 0xe0; first <= 0xff; first++) fixedBytes[first] = 0 // -32 to -1
for (let first = 0xa0; first <= 0xbf; first++) fixedBytes[first] = first - 0xa0 // short strings
for (const first of [0xc0, 0xc2, 0xc3]) fixedBytes[first] = 0 // nil, false, true
for (const [at, bytes] of [1, 2, 4, 8].entries()) fixedBytes[0xcc + at] = fixedBytes[0xd0 + at] = bytes // integers
for (const [at, bytes] of [4, 8].entries()) fixedBytes[0xca + at] = bytes // floating-point numbers

/**
 * Counts the values in a MessagePack body before anything is allocated for them. Knows only what `packBatch` writes: among the other
 * extensions are references, by which a small body becomes a large text.
 *
 * @throws TooManyValues; Error if the body is something else
 */
export function countInMessagePack(body: Uint8Array, limits: MessagePackLimits): number {
  const view = new DataView(body.buffer, body.byteOffset, body.byteLength)
  /** How many values are still to come in the value that is being read, and in each of those around it. */
  let pending = 1
  const outer: number[] = []
  /** The number of keys of each record, by the byte that stands for it. */
  const records = new Map<number, number>()
  let definitions = 0
  let values = 0
  let at = 0

  const skip = (bytes: number) => {
    at += bytes
  }
  const uint8 = () => view.getUint8(at++)
  const uint16 = () => {
    skip(2)
    return view.getUint16(at - 2)
  }
  const uint32 = () => {
    skip(4)
    return view.getUint32(at - 4)
  }

  function open(inner: number): void {
    if (inner > limits.values || outer.length >= limits.depth) throw new TooManyValues()
    outer.push(pending)
    pending = inner
  }

  function skipKey(first: number): void {
    const bytes = first === 0xd9 ? uint8() : fixedBytes[first]!
    if (bytes < 0 || bytes > limits.recordKeyBytes) throw new Error('not a key of a record')
    skip(bytes)
  }

  function defineRecord(): void {
    const record = firstRecord + (uint8() & 0x3f)
    const first = uint8()
    const keys = first === 0xdc ? uint16() : first - 0x90
    if (keys < 0 || keys > limits.recordKeys || ++definitions > limits.records) throw new TooManyValues()
    for (let key = 0; key < keys; key++) skipKey(uint8())
    values += keys
    records.set(record, keys)
    open(keys)
  }

  function skipDate(bytes: number): void {
    if (uint8() !== dateType) throw new Error('not a date')
    skip(bytes)
  }

  function readExtension(): void {
    const type = uint8()
    if (type === recordType) defineRecord()
    else {
      skip(1)
      if (type === decimalType) open(1)
      else if (type !== undefinedType && type !== dateType) throw new Error(`unknown extension ${type}`)
    }
  }

  function read(first: number): void {
    const keys = first >= firstRecord && first < 0x80 ? records.get(first) : undefined
    const bytes = fixedBytes[first]!
    if (keys !== undefined) open(keys)
    else if (bytes >= 0) skip(bytes)
    else if (first <= 0x8f) open(2 * (first - 0x80))
    else if (first <= 0x9f) open(first - 0x90)
    else if (first === 0xd9) skip(uint8())
    else if (first === 0xda) skip(uint16())
    else if (first === 0xdb) skip(uint32())
    else if (first === 0xdc) open(uint16())
    else if (first === 0xdd) open(uint32())
    else if (first === 0xde) open(2 * uint16())
    else if (first === 0xdf) open(2 * uint32())
    else if (first === 0xd4) readExtension()
    else if (first === 0xd6) skipDate(4)
    else if (first === 0xd7) skipDate(8)
    else if (first === 0xc7) skipDate(uint8())
    else throw new Error(`unknown type ${first}`)
  }

  for (;;) {
    while (pending === 0) {
      if (outer.length === 0) {
        if (at !== body.length) throw new Error('more than one value')
        return values
      }
      pending = outer.pop()!
    }
    pending--
    if (++values > limits.values) throw new TooManyValues()
    read(uint8())
  }
}
