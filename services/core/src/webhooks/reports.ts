import { LockMode } from '@mikro-orm/core'
import type { DeliveryReport } from '@workspace-wallet/contract'
import { databaseTime } from '../database/clock.ts'
import type { Em } from '../database/orm.ts'
import { isGenuine } from '../database/row-signer.ts'
import { idToFind } from '../database/types.ts'
import { Ledger } from '../ledger/rows/entities.ts'
import { Webhook } from './entities.ts'
import { pauseFailing } from './operations.ts'

/** The wait after the first, second, … failure in a row, in seconds. */
const backoffSeconds = [5, 30, 120, 600, 1800, 3600]
/** Waits vary by this fraction, so that webhooks that failed together do not retry together. */
const jitter = 0.2
const maxWaitSeconds = 3600
/** A webhook that has failed for this long is paused. */
const maxFailingMs = 7 * 24 * 3600_000
const gone = 410
/** Whoever has the token of a courier cannot have core read the events of a webhook again and again without delivering any. */
const unusedLeaseSeconds = 1

/**
 * Ends a lease: moves the position past the delivered events, and after a failure sets the time of the next attempt. A
 * webhook whose receiver answers 410, or that has failed for seven days, is paused. A report has no effect if the webhook was
 * leased again since. If the webhook was changed since, the report only ends the lease.
 */
export async function reportDeliveries(em: Em, report: DeliveryReport): Promise<{ accepted: boolean }> {
  const { webhookId, generation, delivered, failure } = report
  const webhook = await em.findOne(
    Webhook,
    { id: idToFind('webhook', webhookId) },
    { lockMode: LockMode.PESSIMISTIC_WRITE },
  )
  if (!webhook || webhook.leasedGeneration !== generation) return { accepted: false }
  const now = await databaseTime(em)
  webhook.leasedGeneration = null
  webhook.leasedUntil = now
  const { position } = webhook
  const ledger = await em.findOneOrFail(Ledger, { workspaceId: webhook.workspaceId })
  if (webhook.generation !== generation) return { accepted: false }
  if ((delivered ?? 0) > ledger.position) {
    webhook.nextAttemptAt = secondsAfter(now, unusedLeaseSeconds)
    return { accepted: false }
  }
  if (delivered !== null || failure) {
    webhook.lastAttemptAt = now
    webhook.lastStatus = report.lastStatus
    webhook.lastError = report.lastError
  }
  if (delivered !== null) {
    webhook.position = Math.max(webhook.position, delivered)
    webhook.failures = 0
    webhook.failingSince = null
  }
  if (failure) recordFailure(em, webhook, failure, now)
  else if (webhook.position === position) webhook.nextAttemptAt = secondsAfter(now, unusedLeaseSeconds)
  return { accepted: true }
}

function recordFailure(
  em: Em,
  webhook: Webhook,
  { retryAfterSeconds }: NonNullable<DeliveryReport['failure']>,
  now: Date,
): void {
  // Not above what `backoffOf` distinguishes, so that it cannot overflow.
  webhook.failures = Math.min(webhook.failures + 1, backoffSeconds.length)
  webhook.failingSince ??= now
  webhook.nextAttemptAt = secondsAfter(now, waitOf(retryAfterSeconds) ?? backoffOf(webhook.failures))
  const hasFailedTooLong = now.getTime() - webhook.failingSince.getTime() >= maxFailingMs
  // A row that was modified outside the service is not signed again, and gets no more leases anyway.
  if ((webhook.lastStatus === gone || hasFailedTooLong) && isGenuine(webhook)) pauseFailing(em, webhook, now)
}

function secondsAfter(time: Date, seconds: number): Date {
  return new Date(time.getTime() + 1000 * seconds)
}

/** `Retry-After: 0` becomes one second, so that a receiver cannot keep couriers busy. */
function waitOf(retryAfterSeconds: number | null): number | null {
  return retryAfterSeconds === null ? null : Math.min(Math.max(retryAfterSeconds, 1), maxWaitSeconds)
}

function backoffOf(failures: number): number {
  const seconds = backoffSeconds[failures - 1]!
  return seconds * (1 - jitter + 2 * jitter * Math.random())
}
