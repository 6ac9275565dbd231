import { DomainError } from '@workspace-wallet/contract'
import { CallAborted, type CoreClient, CoreUnreachable } from '@workspace-wallet/core-client'
import { expect, test } from 'vitest'
import { createBatch, createTransfer, sendOnce } from './commands.ts'
import { toDomainError } from './domain-errors.ts'

type Attempt = { atMs: number; resend: boolean }
/** How long an attempt takes, and the error that it fails with; without one it succeeds. */
type Outcome = { takesMs: number; error?: (startedAtMs: number) => Error }

const unreachable = (sent: boolean, sentAtMs: number) =>
  new Error('no answer', { cause: new CoreUnreachable('no answer', sent, sentAtMs) })
const lost =
  (queuedMs = 0) =>
  (startedAtMs: number) =>
    unreachable(true, startedAtMs + queuedMs)
const unsent = (startedAtMs: number) => unreachable(false, startedAtMs)
const rejected = () => new DomainError('T002')

/** Creates a transfer; the attempts have these outcomes, and further ones the last. */
async function create(...outcomes: Outcome[]): Promise<{ result: string; attempts: Attempt[]; endMs: number }> {
  let nowMs = 0
  const attempts: Attempt[] = []
  const abortTimes = new Map<AbortSignal | undefined, number>()
  async function mutate({ resend }: { resend: boolean }, options?: { signal: AbortSignal }): Promise<object> {
    const { takesMs, error } = outcomes[Math.min(attempts.length, outcomes.length - 1)]!
    const startedAtMs = nowMs
    attempts.push({ atMs: startedAtMs, resend })
    const abortedAtMs = abortTimes.get(options?.signal) ?? Number.POSITIVE_INFINITY
    const isAborted = startedAtMs + takesMs > abortedAtMs
    nowMs = Math.min(startedAtMs + takesMs, abortedAtMs)
    if (isAborted) throw new Error('aborted', { cause: new CallAborted('out of time', true, startedAtMs) })
    if (error) throw error(startedAtMs)
    return {}
  }
  async function pause(ms: number): Promise<void> {
    nowMs += ms
  }
  function timeout(ms: number) {
    const { signal } = new AbortController()
    abortTimes.set(signal, nowMs + ms)
    return { signal, clear() {} }
  }
  const clock = { nowMs: () => nowMs, pause, timeout }
  const core = { transfers: { create: { mutate } } } as unknown as CoreClient
  const input = { workspaceId: 'w', caller: { requestId: 'r' }, order: {} as never }
  const result = await createTransfer(core, input, clock).then(
    () => 'done',
    error => error.code as string,
  )
  return { result, attempts, endMs: nowMs }
}

/** How long after it was sent an attempt can still be posted. */
const attemptLifeMs = 9_000
/** When the create fails with S003. */
const deadlineMs = 12_000

test('the first answer is final, and so is a failure to reach core', async () => {
  expect(await create({ takesMs: 5 })).toMatchObject({ result: 'done', endMs: 5 })
  expect(await create({ takesMs: 5, error: rejected })).toMatchObject({ result: 'T002', endMs: 5 })
  expect(await create({ takesMs: 5, error: unsent })).toMatchObject({ result: 'S002', endMs: 5 })
})

test('a create whose answer was lost is sent again as the same transfer', async () => {
  const { result, attempts } = await create({ takesMs: 10, error: lost() }, { takesMs: 10 })
  expect(result).toBe('done')
  expect(attempts.map(({ resend }) => resend)).toEqual([false, true])
})

test('a rejection becomes final when the lost attempt can no longer be posted', async () => {
  const { result, endMs } = await create({ takesMs: 10, error: lost() }, { takesMs: 10, error: rejected })
  expect(result).toBe('T002')
  expect(endMs).toBeGreaterThan(attemptLifeMs)
  expect(endMs).toBeLessThan(attemptLifeMs + 500)
})

test.each<[string, Outcome[]]>([
  ['an attempt that was queued before it was sent', [{ takesMs: 8_000, error: lost(7_900) }]],
  [
    'a second attempt that was lost too',
    [
      { takesMs: 10, error: lost() },
      { takesMs: 7_000, error: rejected },
      { takesMs: 10, error: lost() },
    ],
  ],
])('no rejection is final while %s can still be posted: S003', async (_, outcomes) => {
  const { result, endMs } = await create(...outcomes, { takesMs: 10, error: rejected })
  expect(result).toBe('S003')
  expect(endMs).toBe(deadlineMs)
})

test('a key that core refuses at the first attempt gets the code, and after a lost one S003 at once', async () => {
  const refused = () => new DomainError('GA2021', { reason: 'DISABLED' })
  expect(await create({ takesMs: 5, error: refused })).toMatchObject({ result: 'GA2021', endMs: 5 })
  const afterLost = await create({ takesMs: 10, error: lost() }, { takesMs: 10, error: refused })
  expect(afterLost).toMatchObject({ result: 'S003', attempts: [{ resend: false }, { resend: true }] })
  expect(afterLost.endMs).toBeLessThan(attemptLifeMs)
})

test.each<[string, Outcome[]]>([
  ['a first attempt that gets no answer', [{ takesMs: 60_000 }]],
  ['attempts that are lost one after the other', [{ takesMs: 11_000, error: lost() }]],
  ['a second attempt that gets no answer', [{ takesMs: 10, error: lost() }, { takesMs: 60_000 }]],
])('the deadline holds in every case: %s', async (_, outcomes) => {
  expect(await create(...outcomes)).toMatchObject({ result: 'S003', endMs: deadlineMs })
})

test('the attempts of a batch name the same transfers, one for each item', async () => {
  const attempts: { transferIds: string[]; resend: boolean }[] = []
  const mutate = async (attempt: (typeof attempts)[number]) => {
    attempts.push(attempt)
    if (attempts.length === 1) throw unreachable(true, performance.now())
    return {}
  }
  const core = { transfers: { batch: { mutate } } } as unknown as CoreClient
  const batch = { transfers: [{}, {}] } as never
  await createBatch(core, { workspaceId: 'w', caller: { requestId: 'r' }, batch })
  const [first, second] = attempts
  expect(first).toMatchObject({ resend: false, transferIds: [expect.any(String), expect.any(String)] })
  expect(second).toMatchObject({ resend: true, transferIds: first!.transferIds })
})

test.each<[string, Error, object]>([
  ['S003 without an order if its answer is lost', unreachable(true, 0), { code: 'S003', details: undefined }],
  ['S002 if it was not sent', unreachable(false, 0), { code: 'S002' }],
  ['the error of core', new DomainError('T005', { bizId: 'a' }), { code: 'T005' }],
])('a command that cannot be repeated is sent once and gets %s', async (_, error, expected) => {
  let attempts = 0
  const send = async () => {
    attempts++
    throw error
  }
  expect(await sendOnce(send).catch(toDomainError)).toMatchObject(expected)
  expect(attempts).toBe(1)
})
