import { packBatch } from '@workspace-wallet/contract'
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { bodyLimits, countInBatch, countInJsonBody, maxDepth } from './body-limits.ts'

const limit = 1_000

/** The values in a parsed value, without the keys of objects. */
function valuesIn(value: unknown): number {
  const isLeaf = typeof value !== 'object' || value === null
  return isLeaf ? 1 : Object.values(value).reduce((sum: number, each) => sum + valuesIn(each), 1)
}

describe('MessagePack', () => {
  test('a batch with too many values, or too deep ones, is too large; what is no batch is a bad request', () => {
    for (const body of [
      packBatch(Array.from({ length: limit }, () => ({})) as never),
      Buffer.alloc(maxDepth + 2, 0x91),
    ])
      expect(() => countInBatch(body, limit)).toThrow(
        expect.objectContaining({ code: 'PAYLOAD_TOO_LARGE', message: expect.stringContaining('at most 1000 values') }),
      )
    expect(() => countInBatch(Buffer.alloc(0), limit)).toThrow(
      expect.objectContaining({ code: 'BAD_REQUEST', message: 'a batch must be calls in MessagePack' }),
    )
  })
})

describe('JSON', () => {
  test('every JSON text is counted, with at least the values that are parsed', () => {
    fc.assert(
      fc.property(fc.json(), text => {
        expect(countInJsonBody(Buffer.from(text), 1_000_000)).toBeGreaterThanOrEqual(valuesIn(JSON.parse(text)))
      }),
    )
  })

  test.each([
    ['too many empty objects', `[${'{},'.repeat(600)}{}]`],
    ['too many numbers', `[${'1,'.repeat(1_000)}1]`],
    ['too many keys', `{${'"a":1,'.repeat(600)}"a":1}`],
    ['values too deep in others', '['.repeat(maxDepth + 1)],
  ])('is too large: %s', (_, text) => {
    expect(() => countInJsonBody(Buffer.from(text), limit)).toThrow('at most 1000 values')
  })

  test('brackets and commas in strings are no values', () => {
    const text = JSON.stringify(`${'[{,:'.repeat(1_000)}"\\`.repeat(2))
    expect(countInJsonBody(Buffer.from(text), limit)).toBe(1)
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
    const [packed, json] = [packBatch(calls as never), Buffer.from(JSON.stringify(calls))]
    expect(packed.length, role).toBeLessThanOrEqual(limits.bytes)
    expect(countInBatch(packed, limits.elements), role).toBeLessThanOrEqual(limits.elements)
    // Other encoders name the keys of each object.
    expect(json.length, role).toBeLessThanOrEqual(limits.bytes)
    expect(countInJsonBody(json, limits.elements), role).toBeLessThanOrEqual(limits.elements)
  }
})
