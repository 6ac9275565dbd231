import type { KeyObject } from 'node:crypto'
import type { VerificationKind, VerifyReport } from '@workspace-wallet/contract'
import { type Log, pause } from '@workspace-wallet/runtime'
import type { Pool } from 'pg'
import { coreActor } from '../../audit/actors.ts'
import { writeActions } from '../../audit/record.ts'
import { databaseTime } from '../../database/clock.ts'
import { retryConflicts } from '../../database/errors.ts'
import { type Em, type Orm, transact } from '../../database/orm.ts'
import { findLastVerifications, recordVerification } from '../records.ts'
import { BaselineDigest, type VerifiedEnd } from '../verify/baseline.ts'
import { isBaselineChanged, VerificationOutOfMemory, verifyInThread } from '../verify/thread.ts'
import { withVerificationLock } from './lock.ts'
import { type Intervals, type PlannedVerification, planVerification } from './plan.ts'
import { removeEnds, writeEnds } from './queries.ts'

type Parts = {
  databaseUrl: string
  /** Of the place. */
  number: number
  databaseWriters: readonly string[] | null
  chainKey: KeyObject
  orm: Orm
  reads: Pool
  log: Log
}

type Options = Intervals & {
  /** How often it looks whether a verification is due. */
  tickMs?: number
}

const defaultTickMs = 10_000
/** After a verification that failed, and while another core verifies. */
const retryMs = 60_000
/** Maximum number of violations in the log. The audit has how many there are of each rule. */
const loggedViolations = 20

/**
 * Verifies all workspaces at intervals until `stopping`, on one core at a time. What has ended is in the audit, so a schedule survives
 * restarts, and no verification is missed that a core could not end: it is still due.
 */
export async function scheduleVerifications(parts: Parts, options: Options, stopping: AbortSignal): Promise<void> {
  const { everyMs, tickMs = defaultTickMs } = options
  if (everyMs === 0) return
  const wait = (ms: number) => pause(ms, stopping)
  await wait(tickMs)
  while (!stopping.aborted) {
    const startedAtMs = performance.now()
    const isIdle = await runIfDue(parts, options, stopping).catch(error => {
      const what =
        error instanceof VerificationOutOfMemory
          ? 'a scheduled verification ran out of memory'
          : 'a scheduled verification failed'
      if (!stopping.aborted) parts.log.error({ err: error }, what)
      return false
    })
    // Also if somebody hides in the audit that one has ended, verifications take at most half of the time.
    const tookMs = performance.now() - startedAtMs
    await wait(Math.max(tickMs, tookMs, isIdle ? 0 : retryMs))
  }
}

/** @returns false if a verification is due, and another core runs it */
export async function runIfDue(parts: Parts, intervals: Intervals, stopping: AbortSignal): Promise<boolean> {
  if (!(await findDue(parts, intervals))) return true
  return withVerificationLock(parts, stopping, async signal => {
    // Another core may have ended one meanwhile.
    const due = await findDue(parts, intervals)
    if (due) await runVerification(parts, due, signal)
  })
}

async function findDue(parts: Parts, intervals: Intervals): Promise<PlannedVerification | null> {
  const now = await databaseTime(parts.orm.em.fork())
  return planVerification(await findLastVerifications(parts), intervals, now)
}

async function runVerification(parts: Parts, due: PlannedVerification, signal: AbortSignal): Promise<void> {
  try {
    await verifyAndRecord(parts, due, signal)
  } catch (error) {
    if (!isBaselineChanged(error)) throw error
    parts.log.error(
      'where the last verification ended was changed in the database, outside the service: everything is verified again',
    )
    await verifyAndRecord(parts, { since: null }, signal)
  }
}

async function verifyAndRecord(parts: Parts, { since }: PlannedVerification, signal: AbortSignal): Promise<void> {
  const { databaseUrl, number: place, databaseWriters: writers, chainKey, orm } = parts
  const startedAt = await databaseTime(orm.em.fork())
  const verification = { databaseUrl, place, chainKey, writers, workspaceId: null, checkpoint: null, since }
  const ends: VerifiedEnd[] = []
  let report: VerifyReport | undefined
  for await (const event of verifyInThread(verification, signal)) {
    if (event.kind === 'ends') ends.push(...event.ends)
    if (event.kind === 'result') report = event.report
  }
  signal.throwIfAborted()
  const kind = since === null ? 'WHOLE' : 'INCREMENTAL'
  const digest = report!.ok ? digestOf(ends) : null
  const record = (em: Em, digest: string | null) =>
    recordVerification(em, coreActor, { workspaceId: null, startedAt, kind, ends: digest }, report!)
  if (digest === null) await writeResult(parts, async em => record(em, null))
  else
    try {
      await removeEnds(parts.reads, signal)
      // Whoever changes the rows without the audit makes the digest another one.
      await writeResult(parts, async em => {
        await writeEnds(em, ends)
        record(em, digest)
      })
    } catch (error) {
      // Somebody who can write these rows must not keep a result from the audit. Without them, the next verification is a whole one.
      const level = error === signal.reason ? 'info' : 'error'
      parts.log[level]({ err: error }, 'where a verification ended could not be written: the next one is a whole one')
      await writeResult(parts, async em => record(em, null))
    }
  logResult(parts.log, kind, report!)
}

/** Writes what an action records in the audit, in one transaction. */
function writeResult({ orm, chainKey }: Parts, action: (em: Em) => Promise<void>): Promise<void> {
  return retryConflicts(() =>
    transact(orm, async em => {
      await action(em)
      await writeActions(em, chainKey, { requestId: null, reason: null })
    }),
  )
}

function digestOf(ends: readonly VerifiedEnd[]): string {
  const digest = new BaselineDigest()
  for (const end of ends) digest.add(end)
  return digest.end()
}

function logResult(log: Log, kind: VerificationKind, report: VerifyReport): void {
  const { ok, flows, brokenRules, violations } = report
  if (ok) log.info({ kind, flows }, 'the ledger was verified, and is sound')
  else
    log.error(
      { kind, flows, brokenRules, violations: violations.slice(0, loggedViolations) },
      'a verification found violations: run ledger verify',
    )
}
