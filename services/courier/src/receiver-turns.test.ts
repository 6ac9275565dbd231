import { expect, test } from 'vitest'
import { ReceiverTurns } from './receiver-turns.ts'

function useCpu(ms: number): void {
  const before = process.threadCpuUsage()
  for (;;) {
    const { user, system } = process.threadCpuUsage(before)
    if (user + system >= ms * 1000) return
  }
}

test('after bytes that take long, only others of the same workspace wait, in order', async () => {
  const turns = new ReceiverTurns()
  const given: string[] = []
  turns.take('slow', turns.newAllowance(), () => useCpu(10))
  const ended = new Promise<void>(resolve => {
    turns.take('slow', turns.newAllowance(), () => {
      given.push('second')
      useCpu(10)
    })
    turns.take('slow', turns.newAllowance(), () => {
      given.push('third')
      resolve()
    })
  })
  turns.take('other', turns.newAllowance(), () => given.push('other'))
  turns.take('other', turns.newAllowance(), () => given.push('other'))
  expect(given).toEqual(['other', 'other'])
  await ended
  expect(given).toEqual(['other', 'other', 'second', 'third'])
  turns.take('slow', turns.newAllowance(), () => given.push('again'))
  expect(given.at(-1)).toBe('again')
})

test('a workspace that takes long at a time waits for more times as long', () => {
  const turns = new ReceiverTurns()
  // Each at once: the pause goes on meanwhile.
  turns.take('50', turns.newAllowance(), () => useCpu(50))
  expect(turns.pauseMs('50')).toBeGreaterThan(50 * 10)
  turns.take('300', turns.newAllowance(), () => useCpu(300))
  expect(turns.pauseMs('300')).toBeGreaterThan(300 * 30)
  expect(turns.pauseMs('other')).toBe(0)
})

test('pieces of one connection that take little each count together, and those of several do not', () => {
  const turns = new ReceiverTurns()
  for (let piece = 0; piece < 6; piece++) turns.take('several', turns.newAllowance(), () => useCpu(1))
  expect(turns.pauseMs('several')).toBe(0)
  const allowance = turns.newAllowance()
  for (let piece = 0; piece < 6; piece++) turns.take('one', allowance, () => useCpu(1))
  expect(turns.pauseMs('one')).toBeGreaterThan(0)
})
