import { expect, test } from 'vitest'
import { currentMoment, elapsedMs, never } from './moment.ts'

const since = { monotonicMs: 1_000, wallMs: 1_700_000_000_000 }

test.each([
  { name: 'a machine that runs', monotonicMs: 2_000, wallMs: 2_000, elapsed: 2_000 },
  {
    name: 'a machine that was suspended, so that its monotonic clock stood still',
    monotonicMs: 1,
    wallMs: 80_000,
    elapsed: 80_000,
  },
  { name: 'a clock that was set back', monotonicMs: 6_000, wallMs: -3_600_000, elapsed: 6_000 },
])('$name: at least the time that has passed', ({ monotonicMs, wallMs, elapsed }) => {
  const until = { monotonicMs: since.monotonicMs + monotonicMs, wallMs: since.wallMs + wallMs }
  expect(elapsedMs(since, until)).toBe(elapsed)
})

test('what has never been confirmed is not confirmed now', () => {
  expect(elapsedMs(never)).toBe(Number.POSITIVE_INFINITY)
  expect(elapsedMs(currentMoment())).toBeLessThan(Number.POSITIVE_INFINITY)
})
