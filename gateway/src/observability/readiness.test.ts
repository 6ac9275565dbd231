import { expect, test, vi } from 'vitest'
import { type Fault, readReadiness, shared } from './readiness.ts'

// Anybody may ask the public listener for readiness: a flood of that must not become a flood of writes.
test('a check is made once for all who ask together, and not again at once while the part is up', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const check = vi.fn(async (): Promise<Fault> => null)
  const ask = shared(check)
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([null, null, null])
  expect(await ask()).toBe(null)
  expect(check).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(200)
  check.mockResolvedValue('gone')
  expect(await ask()).toBe('gone')
  // What is down is asked every time, so that it is ready as soon as it can be.
  check.mockResolvedValue(null)
  expect(await ask()).toBe(null)
  expect(check).toHaveBeenCalledTimes(3)
  vi.useRealTimers()
})

test('every part is named, up or down; a gateway that stops is not ready', async () => {
  const parts = { core: async () => null, nonces: async () => 'the disk is full' }
  expect(await readReadiness(parts, false)).toEqual({
    status: 'not ready',
    parts: { core: { up: true }, nonces: { up: false, reason: 'the disk is full' } },
  })
  expect((await readReadiness({ core: async () => null }, true)).status).toBe('stopping')
})
