import type { LeasedWebhook } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { until } from '../../../test/setup/until.ts'
import type { AttemptOutcome } from './attempt.ts'
import { AttemptSlots } from './attempt-slots.ts'
import { attemptReserveMs, type DeliverOptions, deliver } from './deliver.ts'

const success: AttemptOutcome = { result: 'success', status: 204, retryAfterSeconds: null, code: null }
const failure: AttemptOutcome = { result: 'status', status: 503, retryAfterSeconds: 7, code: null }
const timeout: AttemptOutcome = { result: 'timeout', status: null, retryAfterSeconds: null, code: null }

const generation = '4f6a5c1e-8d1b-4f0e-9a57-0d6c1d2f3a4b'

/** A webhook with deliveries at these positions. */
function leased(positions: number[], concurrency = 1): LeasedWebhook {
  const deliveries = positions.map(position => ({ position, body: '{}', headers: {} }))
  const [webhookId, workspaceId, url] = ['whk_1', 'wsp_1', 'https://a.example']
  return { webhookId, workspaceId, generation, url, concurrency, leaseMs: 60_000, deliveries }
}

function optionsFor(attempt: (position: number) => Promise<AttemptOutcome>): DeliverOptions & { stop(): void } {
  const stopping = new AbortController()
  return {
    slots: new AttemptSlots(64),
    attempt: (_, { position }) => attempt(position),
    leftMs: () => 60_000,
    ending: stopping.signal,
    stop: () => stopping.abort(),
  }
}

/** Attempts that end when the test says so. */
function heldAttempts() {
  const begun = new Map<number, (outcome: AttemptOutcome) => void>()
  const attempt = (position: number) => new Promise<AttemptOutcome>(resolve => begun.set(position, resolve))
  return { begun, attempt }
}

test('with concurrency 1, each delivery begins after the success of the one before, and a failure ends the lease', async () => {
  const attempts: number[] = []
  let inProgress = 0
  const options = optionsFor(async position => {
    attempts.push(position)
    expect(++inProgress).toBe(1)
    await Promise.resolve()
    inProgress--
    return position === 12 ? failure : success
  })
  expect(await deliver(leased([4, 7, 12, 13]), options)).toEqual({
    webhookId: 'whk_1',
    generation,
    delivered: 7,
    lastStatus: 503,
    lastError: null,
    failure: { retryAfterSeconds: 7 },
  })
  expect(attempts).toEqual([4, 7, 12])
})

test('all successes are reported with the last position and status', async () => {
  const report = await deliver(
    leased([4, 7]),
    optionsFor(async () => success),
  )
  expect(report).toMatchObject({ delivered: 7, lastStatus: 204, failure: null })
})

test('a lease that waits for a slot is reported at once when it is revoked, and when another attempt of it fails', async () => {
  const { begun, attempt } = heldAttempts()
  const slots = new AttemptSlots(1)
  const first = deliver(leased([1, 2], 2), { ...optionsFor(attempt), slots })
  const other = optionsFor(attempt)
  const revoked = deliver(leased([3]), { ...other, slots })
  await until('an attempt has begun', () => begun.has(1))
  other.stop()
  expect(await revoked).toMatchObject({ delivered: null, failure: null })
  begun.get(1)!(failure)
  expect(await first).toMatchObject({ delivered: null, lastStatus: 503 })
  expect([...begun.keys()]).toEqual([1])
  expect([slots.inUse, slots.waiting]).toEqual([0, 0])
})

test('with a higher concurrency, at most that many are in progress, and successes after a failure do not count', async () => {
  const { begun, attempt } = heldAttempts()
  const report = deliver(leased([1, 2, 3, 4, 5, 6], 3), optionsFor(attempt))
  const isBegun = (position: number) => until('the attempt has begun', () => begun.has(position))
  await isBegun(3)
  expect([...begun.keys()]).toEqual([1, 2, 3])
  begun.get(3)!(success)
  await isBegun(4)
  begun.get(2)!(timeout)
  begun.get(4)!(success)
  begun.get(1)!(success)
  expect(await report).toMatchObject({ delivered: 1, lastStatus: null, lastError: 'TIMEOUT' })
  expect([...begun.keys()]).toEqual([1, 2, 3, 4])
})

test('a name that does not resolve looks like one that leads to an address that is not allowed', async () => {
  const errors = await Promise.all(
    (['dns', 'refused'] as const).map(async result => {
      const outcome = { ...timeout, result, code: `the cause of ${result}` }
      return deliver(
        leased([1]),
        optionsFor(async () => outcome),
      )
    }),
  )
  expect(errors[0]).toMatchObject({ lastStatus: null, lastError: 'ADDRESS', failure: { retryAfterSeconds: null } })
  expect(errors[1]).toEqual(errors[0])
})

test('no attempt begins when less of the lease is left than an attempt may take', async () => {
  const attempts: number[] = []
  let left = attemptReserveMs + 1
  const options = optionsFor(async position => {
    attempts.push(position)
    left--
    return success
  })
  const report = await deliver(leased([1, 2, 3]), { ...options, leftMs: () => left })
  expect(attempts).toEqual([1, 2])
  expect(report).toMatchObject({ delivered: 2, lastStatus: 204, failure: null })
})

test('a lease that waits for a slot until it is nearly over ends without an attempt', async () => {
  const { begun, attempt } = heldAttempts()
  const options = optionsFor(attempt)
  const slots = new AttemptSlots(1)
  await slots.acquire('wsp_2', new AbortController().signal)
  let left = 60_000
  const report = deliver(leased([1]), { ...options, slots, leftMs: () => left })
  left = attemptReserveMs - 1
  slots.release('wsp_2')
  expect(await report).toMatchObject({ delivered: null, lastStatus: null, failure: null })
  expect(begun.size).toBe(0)
  expect(slots.inUse).toBe(0)
})

test('a courier that stops finishes the attempts in progress and begins no other', async () => {
  const { begun, attempt } = heldAttempts()
  const options = optionsFor(attempt)
  const report = deliver(leased([1, 2]), options)
  await until('the attempt has begun', () => begun.has(1))
  options.stop()
  begun.get(1)!(success)
  expect(await report).toMatchObject({ delivered: 1, lastStatus: 204, failure: null })
  expect(begun.size).toBe(1)
})
