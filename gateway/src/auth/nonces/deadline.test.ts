import { setImmediate } from 'node:timers/promises'
import { expect, test } from 'vitest'
import { Deadline } from './deadline.ts'

test('an answer that arrives while this process stalls is in time', async () => {
  const deadline = new Deadline(80, 'late')
  // The timers of the event loop come next, before sockets are read.
  await setImmediate()
  const answer = deadline.inTime(setImmediate('answer'))
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 500)
  expect(await answer).toBe('answer')
})

test('without an answer, the deadline ends the wait', async () => {
  const deadline = new Deadline(80, 'late')
  await expect(deadline.inTime(new Promise(() => {}))).rejects.toThrow('late')
  await expect(deadline.inTime(new Promise(() => {}))).rejects.toThrow('late')
})
