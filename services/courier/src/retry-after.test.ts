import { expect, test } from 'vitest'
import { retryAfterSeconds } from './retry-after.ts'

const nowMs = Date.parse('2026-11-22T10:00:00.500Z')

test.each([
  [undefined, null],
  ['', null],
  ['0', 0],
  ['120', 120],
  [' 7 ', 7],
  ['99999999999999999999', 86_400],
  ['-1', null],
  ['1.5', null],
  ['1e3', null],
  ['soon', null],
  ['2026', 2026],
  ['2026-11-22T10:01:00Z', null],
  ['Sun, 22 Nov 2026 10:01:00 GMT', 60],
  ['Sun, 22 Nov 2026 09:00:00 GMT', 0],
  ['Sun, 22 Nov 2099 09:00:00 GMT', 86_400],
  ['Sun, 99 Nov 2026 09:00:00 GMT', null],
])('Retry-After: %j means %j seconds', (header, seconds) => {
  expect(retryAfterSeconds(header, nowMs)).toBe(seconds)
})
