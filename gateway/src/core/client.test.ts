import { DomainError } from '@workspace-wallet/contract'
import { CallAborted, CoreUnreachable } from '@workspace-wallet/core-client'
import { expect, test } from 'vitest'
import { type CoreClient, createTransfer } from './client.ts'

type Attempt = { atMs: number; resend: boolean }
/** What becomes of an attempt: how long it takes, and what it fails with; done when with nothing. */
type Fate = { takesMs: number; error?: (departedAtMs: number) => Error }

const unreachable = (sent: boolean, departedAtMs: number) =>
  new Error('no answer', { cause: new CoreUnreachable(sent, undefined, departedAtMs) })
const lost =
  (waitsMs = 0) =>
  (atMs: number) =>
    unreachable(true, atMs + waitsMs)
const away = (atMs: number) => unreachable(false, atMs)
const refused = () => new DomainError('T002')

/** Creates a transfer at cores that do as they are told, the last thing again and again. */
async function create(...fates: Fate[]): Promise<{ outcome: string; attempts: Attempt[]; endMs: number }> {
  let nowMs = 0
  const attempts: Attempt[] = []
  const abortsAtMs = new Map<AbortSignal | undefined, number>()
  async function mutate({ resend }: { resend: boolean }, options?: { signal: AbortSignal }): Promise<object> {
    const { takesMs, error } = fates[Math.min(attempts.length, fates.length - 1)]!
    attempts.push({ atMs: nowMs, resend })
    const departedAtMs = nowMs
    const abortsAt = abortsAtMs.get(options?.signal) ?? Number.POSITIVE_INFINITY
    const isAborted = nowMs + takesMs > abortsAt
    nowMs = Math.min(nowMs + takesMs, abortsAt)
    if (isAborted) throw new Error('aborted', { cause: new CallAborted('out of time', true, departedAtMs) })
    if (error) throw error(departedAtMs)
    return {}
  }
  async function pause(ms: number): Promise<void> {
    nowMs += ms
  }
  function timeout(ms: number) {
    const { signal } = new AbortController()
    abortsAtMs.set(signal, nowMs + ms)
    return { signal, clear() {} }
  }
  const clock = { nowMs: () => nowMs, pause, timeout }
  const core = { transfers: { create: { mutate } } } as unknown as CoreClient
  const input = { workspaceId: 'w', caller: { requestId: 'r' }, order: {} as never }
  const outcome = await createTransfer(core, input, clock).then(
    () => 'done',
    error => error.code as string,
  )
  return { outcome, attempts, endMs: nowMs }
}

/** How long an attempt may still be posted after it has left. */
const lifeMs = 9_000
/** Within which the caller hears of the transfer, or S003. */
const deadlineMs = 12_000

test('a first answer is believed at once, and so is a core that was not reached', async () => {
  expect(await create({ takesMs: 5 })).toMatchObject({ outcome: 'done', endMs: 5 })
  expect(await create({ takesMs: 5, error: refused })).toMatchObject({ outcome: 'T002', endMs: 5 })
  expect(await create({ takesMs: 5, error: away })).toMatchObject({ outcome: 'S002', endMs: 5 })
})

test('an answer that was lost is asked for again, as the same transfer', async () => {
  const { outcome, attempts } = await create({ takesMs: 10, error: lost() }, { takesMs: 10 })
  expect(outcome).toBe('done')
  expect(attempts.map(({ resend }) => resend)).toEqual([false, true])
})

test('a refusal is believed when what was lost cannot be posted any more, and not before', async () => {
  const { outcome, endMs } = await create({ takesMs: 10, error: lost() }, { takesMs: 10, error: refused })
  expect(outcome).toBe('T002')
  expect(endMs).toBeGreaterThan(lifeMs)
  expect(endMs).toBeLessThan(lifeMs + 500)
})

test.each<[string, Fate[]]>([
  ['an attempt that waited before it left', [{ takesMs: 8_000, error: lost(7_900) }]],
  [
    'a second attempt that was lost too',
    [
      { takesMs: 10, error: lost() },
      { takesMs: 7_000, error: refused },
      { takesMs: 10, error: lost() },
    ],
  ],
])('no refusal is believed while %s may be under way: S003', async (_, fates) => {
  const { outcome, endMs } = await create(...fates, { takesMs: 10, error: refused })
  expect(outcome).toBe('S003')
  expect(endMs).toBe(deadlineMs)
})

test.each<[string, Fate[]]>([
  ['a first attempt that is never answered', [{ takesMs: 60_000 }]],
  ['attempts that are lost one after the other', [{ takesMs: 11_000, error: lost() }]],
  ['a second attempt that is never answered', [{ takesMs: 10, error: lost() }, { takesMs: 60_000 }]],
])('the deadline holds whatever happens: %s', async (_, fates) => {
  expect(await create(...fates)).toMatchObject({ outcome: 'S003', endMs: deadlineMs })
})
