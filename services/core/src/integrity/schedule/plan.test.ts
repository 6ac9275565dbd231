import { expect, test } from 'vitest'
import type { EndedVerification, LastVerifications } from '../records.ts'
import { planVerification } from './plan.ts'

const hourMs = 3_600_000
const intervals = { everyMs: hourMs, wholeEveryMs: 7 * 24 * hourMs }
const noon = new Date('2026-11-23T12:00:00Z')
const nothing: LastVerifications = { whole: null, incremental: null, continued: null }

/** One that started so many hours before noon and took a minute, if not said otherwise. */
function ended(
  hoursAgo: number,
  { tookHours = 1 / 60, ...rest }: Partial<EndedVerification> & { tookHours?: number } = {},
): EndedVerification {
  const startedAt = new Date(noon.getTime() - hoursAgo * hourMs)
  const endedAt = new Date(startedAt.getTime() + tookHours * hourMs)
  return { kind: 'WHOLE', ok: true, startedAt, endedAt, ends: 'digest', flows: 0, ...rest }
}

const plan = (last: Partial<LastVerifications>) => planVerification({ ...nothing, ...last }, intervals, noon)

test('the first verification is a whole one', () => {
  expect(plan({})).toEqual({ since: null })
})

test('an incremental one continues the newest sound one, an interval after the last start', () => {
  const whole = ended(3)
  const incremental = ended(1.01, { kind: 'INCREMENTAL', ends: 'later' })
  expect(plan({ whole, incremental, continued: incremental })).toEqual({ since: 'later' })
  expect(plan({ whole, continued: whole })).toEqual({ since: 'digest' })
  const recent = ended(0.9, { kind: 'INCREMENTAL' })
  expect(plan({ whole, incremental: recent, continued: recent })).toBe(null)
  expect(plan({ whole: ended(0.9), incremental, continued: incremental })).toBe(null)
})

test('a whole one is due a week after the last whole one', () => {
  const incremental = ended(0.5, { kind: 'INCREMENTAL' })
  expect(plan({ whole: ended(7 * 24), incremental, continued: incremental })).toEqual({ since: null })
  expect(plan({ whole: ended(7 * 24 - 1), incremental, continued: incremental })).toBe(null)
})

test('after one with violations, a whole one is due a day later, and incremental ones continue the last sound one', () => {
  const sound = ended(30, { kind: 'INCREMENTAL', ends: 'sound' })
  const whole = ended(2, { ok: false, ends: null })
  expect(plan({ whole, incremental: sound, continued: sound })).toEqual({ since: 'sound' })
  expect(plan({ whole: ended(25, { ok: false, ends: null }), incremental: sound, continued: sound })).toEqual({
    since: null,
  })
  expect(plan({ whole })).toBe(null)
})

test('one that operators ran is not continued: a whole one follows', () => {
  expect(plan({ whole: ended(2, { ends: null }) })).toEqual({ since: null })
})

test('one that takes longer than its interval is followed by as long a pause', () => {
  const whole = ended(24)
  const slow = ended(5, { kind: 'INCREMENTAL', tookHours: 3 })
  expect(plan({ whole, incremental: slow, continued: slow })).toBe(null)
  const rested = ended(6, { kind: 'INCREMENTAL', tookHours: 3 })
  expect(plan({ whole, incremental: rested, continued: rested })).toEqual({ since: 'digest' })
})
