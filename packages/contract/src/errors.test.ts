import { expect, test } from 'vitest'
import {
  atBatchIndex,
  batchIndexOf,
  DomainError,
  type ErrorCode,
  errorTable,
  fieldReasons,
  isDomainError,
  isErrorCode,
} from './errors.ts'

const codes = Object.keys(errorTable) as ErrorCode[]

/** Section 7 of the specification. */
const specified: [ErrorCode, number, string?][] = [
  ['GA2001', 401],
  ['GA2011', 401],
  ['GA2021', 403],
  ['GA2032', 404],
  ['GA2034', 403],
  ['GA2013', 401],
  ['GA2012', 401, 'SIGNATURE_INVALID'],
  ['GA2022', 403],
  ['GA2024', 403],
  ['50090201', 403, 'API_ACCESS_DENIED'],
  ['S012', 400, 'INVALID_PARAMETER'],
]

test.each(specified)('%s has the status %d of the specification', (code, http, message) => {
  expect(errorTable[code].http).toBe(http)
  if (message) expect(errorTable[code].message).toBe(message)
})

test.each(codes)('%s is a failure with a symbolic message and a condition', code => {
  const { http, message, when } = errorTable[code]
  expect(http).toBeGreaterThanOrEqual(400)
  expect(http).toBeLessThanOrEqual(599)
  expect(message).toMatch(/^[A-Z]+(_[A-Z]+)*$/)
  expect(when).toMatch(/^[A-Z].*\.$/)
  expect(isErrorCode(code)).toBe(true)
})

test('only GA2024 and 50090201 have the same message, as in section 5.4', () => {
  const messages = codes.map(code => errorTable[code].message)
  expect(
    codes.filter(code => messages.filter(each => each === errorTable[code].message).length > 1).toSorted(),
  ).toEqual(['50090201', 'GA2024'])
  expect(new Set(fieldReasons).size).toBe(fieldReasons.length)
})

test.each(['', 's012', 'X999', 'toString', '__proto__'])('"%s" is not a code', code => {
  expect(isErrorCode(code)).toBe(false)
})

test('an error keeps its details and gets its place in a batch', () => {
  const error = new DomainError('T005', { bizId: 'rent' })
  expect(error).toMatchObject({ name: 'DomainError', message: 'T005 BIZ_ID_CONFLICT', details: { bizId: 'rent' } })
  expect(batchIndexOf(error)).toBe(undefined)
  const placed = atBatchIndex(error, 3)
  expect(placed).toMatchObject({ code: 'T005', details: { bizId: 'rent', index: 3 } })
  expect(batchIndexOf(placed)).toBe(3)
  expect(batchIndexOf(atBatchIndex(new DomainError('T002'), 0))).toBe(0)
  expect(isDomainError(placed)).toBe(true)
  expect(isDomainError(new Error('T005 BIZ_ID_CONFLICT'))).toBe(false)
})
