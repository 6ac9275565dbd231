import { expect, test } from 'vitest'
import { formatTime } from './records.ts'

// In this order: the text of the last time is kept.
test.each([
  [0, '1970-01-01T00:00:00.000Z'],
  [1, '1970-01-01T00:00:00.001Z'],
  [0, '1970-01-01T00:00:00.000Z'],
  [-1, '1969-12-31T23:59:59.999Z'],
  [Date.UTC(2024, 1, 29, 23, 59, 59, 999), '2024-02-29T23:59:59.999Z'],
  [Date.UTC(2024, 1, 29, 23, 59, 59, 999), '2024-02-29T23:59:59.999Z'],
  [253_402_300_799_999, '9999-12-31T23:59:59.999Z'],
])('the time %d is written as %s', (ms, text) => {
  expect(formatTime(new Date(ms))).toBe(text)
})

test('a time that does not exist is an error', () => {
  expect(() => formatTime(new Date(Number.NaN))).toThrow(RangeError)
})
