import { expect, test } from 'vitest'
import { parseDomainError } from './error-details.ts'

test('an error is recreated with the details of its code and its place in a batch, and without anything else', () => {
  const error = parseDomainError('T005', { bizId: 'rent', index: 3, other: 'x'.repeat(100_000) })
  expect(error).toMatchObject({ name: 'DomainError', code: 'T005' })
  expect(error!.details).toEqual({ bizId: 'rent', index: 3 })
  expect(parseDomainError('T002', undefined)!.details).toBe(undefined)
  expect(parseDomainError('S002', { retryAfterSeconds: 1, reason: 'NEW' })!.details).toEqual({ retryAfterSeconds: 1 })
})

test.each<[unknown, unknown]>([
  ['T099', undefined],
  ['toString', undefined],
  [['T002'], undefined],
  [{ toString: 1 }, undefined],
  [undefined, undefined],
  ['T002', null],
  ['T002', 'text'],
  ['T002', { index: -1 }],
  ['T002', { index: 1.5 }],
  ['T002', { index: '1' }],
  ['S002', undefined],
  ['S002', {}],
  ['S002', { retryAfterSeconds: '1' }],
  ['S002', { retryAfterSeconds: Number.NaN }],
  ['S002', { retryAfterSeconds: -1 }],
  ['S029', { retryAfterSeconds: 2 ** 60 }],
  ['S003', { transferId: 'trf_1' }],
  ['S003', { transferId: 'trf_01h455vb4pex5vsknk084sn02q\r\n' }],
  ['S003', { transferId: ['trf_01h455vb4pex5vsknk084sn02q'] }],
  ['S012', { field: 'amount', reason: 'toString' }],
  ['T005', { bizId: 'x'.repeat(1_025) }],
  ['T008', { limit: '1', remaining: '1', resetsAt: 7 }],
])('is no error that core sends: %j %j', (code, details) => {
  expect(parseDomainError(code, details)).toBe(null)
})
