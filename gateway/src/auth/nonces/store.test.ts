import { expect, test } from 'vitest'
import { checkFence, fenceOf } from './store.ts'

const now = 1_800_000_000

// A gateway accepts timestamps within 60 s of its own clock. If the store's clock differed by more than the tolerance of
// 10 s, a nonce could expire while its request is still accepted.
test.each([-71, 71, 3600])(
  'a timestamp %i s off the clock of the store is rejected, whatever the clock of the gateway',
  offset => {
    expect(() => checkFence(now + offset, Number.NEGATIVE_INFINITY, now)).toThrow('clocks')
  },
)

test.each([-70, 0, 70])('a timestamp %i s off the clock of the store is accepted', offset => {
  expect(() => checkFence(now + offset, Number.NEGATIVE_INFINITY, now)).not.toThrow()
})

test('what may have been accepted before a generation began is rejected, up to the last second', () => {
  const fence = fenceOf(now, false)
  expect(() => checkFence(now + 70, fence, now + 10)).toThrow(expect.objectContaining({ code: 'S002' }))
  expect(() => checkFence(now + 71, fence, now + 10)).not.toThrow()
  expect(fenceOf(now, true)).toBe(Number.NEGATIVE_INFINITY)
})
