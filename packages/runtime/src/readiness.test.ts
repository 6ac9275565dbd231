import { expect, test, vi } from 'vitest'
import { readReadiness, sharedCheck } from './readiness.ts'

// Anybody may request /readyz of the public listener. A flood of requests must not become a flood of writes.
test('concurrent callers share a check, and a successful result is reused for a short time', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const check = vi.fn(async (): Promise<string | null> => null)
  const ask = sharedCheck(check)
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([null, null, null])
  expect(await ask()).toBe(null)
  expect(check).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(200)
  check.mockResolvedValue('gone')
  expect(await ask()).toBe('gone')
  // A failed check is not reused, so that the gateway is ready as soon as possible.
  check.mockResolvedValue(null)
  expect(await ask()).toBe(null)
  expect(check).toHaveBeenCalledTimes(3)
  vi.useRealTimers()
})

test('every dependency is listed, up or down; a gateway that stops is not ready', async () => {
  const parts = { core: async () => null, nonces: async () => 'the disk is full' }
  expect(await readReadiness(parts, false)).toEqual({
    status: 'not ready',
    parts: { core: { up: true }, nonces: { up: false, reason: 'the disk is full' } },
  })
  expect((await readReadiness({ core: async () => null }, true)).status).toBe('stopping')
})
