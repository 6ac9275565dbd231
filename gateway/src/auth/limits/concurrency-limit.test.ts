import { expect, test } from 'vitest'
import { ConcurrencyLimit } from './concurrency-limit.ts'

const rejected = expect.objectContaining({ code: 'S002', details: { retryAfterSeconds: 1 } })

test('one workspace may have all requests, and a further one fails with S002 until one of them has ended', () => {
  const limit = new ConcurrencyLimit(3)
  const [leave] = [limit.enter('a'), limit.enter('a'), limit.enter('a')]
  expect(() => limit.enter('a')).toThrow(rejected)
  leave!()
  limit.enter('a')
  // Only the first call counts.
  leave!()
  expect(() => limit.enter('a')).toThrow(rejected)
})

test('another workspace gets its share although the limit is reached', () => {
  const limit = new ConcurrencyLimit(4)
  const ofGreedy = Array.from({ length: 4 }, () => limit.enter('greedy'))
  const ofModest = [limit.enter('modest'), limit.enter('modest')]
  expect(() => limit.enter('modest')).toThrow(rejected)
  for (const leave of ofGreedy.slice(0, 3)) leave()
  limit.enter('modest')
  for (const leave of ofModest) leave()
  for (let count = 0; count < 2; count++) limit.enter('greedy')
  expect(() => limit.enter('greedy')).toThrow(rejected)
})
