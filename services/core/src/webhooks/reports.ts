import { LockMode } from '@mikro-orm/core'
import type { Report } from '@workspace-wallet/contract'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { Ledger } from '../ledger/rows/entities.ts'
import { Webhook } from './entities.ts'
import { pauseFailing } from './operations.ts'

/** How long after the first, second, … failure in a row the next attempt is, in seconds. */
const backoffSeconds = [5, 30, 120, 600, 1800, 3600]
/** The waits vary by so much, so that webhooks that failed together do not all retry together. */
const jitter = 0.2
const maxWaitSeconds = 3600
/** A webhook that has failed for so long is paused. */
const maxFailingMs = 7 * 24 * 3600_000
const gone = 410

/**
 * Ends a lease: moves the position over what was delivered, or sets the time of the next attempt after a failure. A webhook
 * whose receiver answers 410, or that has failed for seven days, is paused. A report of a lease that is not the last one, or
 * of a webhook that was changed since, has no effect, except that a lease ends.
 */
export async function reportDeliveries(em: Em, report: Report): Promise<{ accepted: boolean }> {
  const { webhookId, generation, delivered, failure } = report
  const webhook = await em.findOne(Webhook, { id: webhookId }, { lockMode: LockMode.PESSIMISTIC_WRITE })
  if (!webhook || webhook.leasedGeneration !== generation) return { accepted: false }
  const now = await databaseTime(em)
  webhook.leasedGeneration = 0
  webhook.leasedUntil = now
  const ledger = await em.findOneOrFail(Ledger, { workspaceId: webhook.workspaceId })
  if (webhook.generation !== generation || (delivered ?? 0) > ledger.position) return { accepted: false }
  if (delivered !== null || failure) {
    webhook.lastAttemptAt = now
    webhook.lastStatus = report.lastStatus
  }
  if (delivered !== null) {
    webhook.position = Math.max(webhook.position, delivered)
    webhook.failures = 0
    webhook.failingSince = null
  }
  if (failure) recordFailure(em, webhook, failure, now)
  return { accepted: true }
}

function recordFailure(
  em: Em,
  webhook: Webhook,
  { retryAfterSeconds }: NonNullable<Report['failure']>,
  now: Date,
): void {
  webhook.failures += 1
  webhook.failingSince ??= now
  webhook.nextAttemptAt = new Date(now.getTime() + 1000 * (waitOf(retryAfterSeconds) ?? backoffOf(webhook.failures)))
  const hasFailedTooLong = now.getTime() - webhook.failingSince.getTime() >= maxFailingMs
  // A modified row is not signed again: it gets no more leases anyway.
  if ((webhook.lastStatus === gone || hasFailedTooLong) && isGenuine(webhook)) pauseFailing(em, webhook, now)
}

/** `Retry-After: 0` is one second, so that a receiver cannot make couriers busy. */
function waitOf(retryAfterSeconds: number | null): number | null {
  return retryAfterSeconds === null ? null : Math.min(Math.max(retryAfterSeconds, 1), maxWaitSeconds)
}

function backoffOf(failures: number): number {
  const seconds = backoffSeconds[Math.min(failures, backoffSeconds.length) - 1]!
  return seconds * (1 - jitter + 2 * jitter * Math.random())
}
