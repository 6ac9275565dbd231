import { expect, test } from 'vitest'
import { checkFence, fenceOf } from './store.ts'

const now = 1_800_000_000

// A timestamp that the gateway believes is within 60 s of the gateway's clock. Were the store's clock further off than the
// 10 s that are allowed for, a nonce could be forgotten while its request is still believed.
test.each([-71, 71, 3600])(
  'a timestamp %i s off the clock of the store is not believed, whatever the gateway says',
  offset => {
    expect(() => checkFence(now + offset, Number.NEGATIVE_INFINITY, now)).toThrow('clocks')
  },
)

test.each([-70, 0, 70])('a timestamp %i s off the clock of the store is', offset => {
  expect(() => checkFence(now + offset, Number.NEGATIVE_INFINITY, now)).not.toThrow()
})

test('what may have been accepted before a generation began is refused, up to the last second of it', () => {
  const fence = fenceOf(now, false)
  expect(() => checkFence(now + 70, fence, now + 10)).toThrow(expect.objectContaining({ code: 'S002' }))
  expect(() => checkFence(now + 71, fence, now + 10)).not.toThrow()
  expect(fenceOf(now, true)).toBe(Number.NEGATIVE_INFINITY)
})
