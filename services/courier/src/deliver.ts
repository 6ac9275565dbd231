import type { Delivery, DeliveryError, DeliveryReport, LeasedWebhook } from '@workspace-wallet/contract'
import type { AttemptOutcome, AttemptResult } from './attempt.ts'
import type { AttemptSlots } from './attempt-slots.ts'

/** Maximum duration of an attempt, in milliseconds. */
export const attemptMs = 15_000
/** An attempt begins only if it ends before the lease does, with a reserve for its report. */
export const attemptReserveMs = attemptMs + 1_000

export type DeliverOptions = {
  slots: AttemptSlots
  attempt: (webhook: LeasedWebhook, delivery: Delivery) => Promise<AttemptOutcome>
  /** How long the lease is still valid, in milliseconds. */
  leftMs: () => number
  /** No attempt begins after it is aborted. */
  ending: AbortSignal
}

/**
 * Delivers the events of a lease in order, at most `concurrency` at a time. After a failure, no further attempt begins. Resolves
 * with the report when all attempts have ended.
 */
export async function deliver(webhook: LeasedWebhook, options: DeliverOptions): Promise<DeliveryReport> {
  const { deliveries, concurrency, workspaceId } = webhook
  const { slots, attempt, leftMs, ending } = options
  const outcomes: AttemptOutcome[] = []
  let begun = 0
  const failed = new AbortController()
  const over = AbortSignal.any([ending, failed.signal])
  const mayBegin = () => begun < deliveries.length && !over.aborted && leftMs() >= attemptReserveMs

  async function deliverNext(): Promise<void> {
    while (mayBegin() && (await slots.acquire(workspaceId, over))) {
      try {
        // Waiting for a slot takes time.
        if (!mayBegin()) return
        const at = begun++
        const outcome = await attempt(webhook, deliveries[at]!)
        outcomes[at] = outcome
        if (outcome.result !== 'success') failed.abort()
      } finally {
        slots.release(workspaceId)
      }
    }
  }
  await Promise.all(Array.from({ length: Math.min(concurrency, deliveries.length) }, deliverNext))
  return reportOf(webhook, outcomes)
}

/** What the customer sees of a failed attempt, besides its status. */
const errorOf: Record<AttemptResult, DeliveryError | null> = {
  success: null,
  status: null,
  timeout: 'TIMEOUT',
  refused: 'ADDRESS',
  dns: 'ADDRESS',
  connection: 'CONNECTION',
  tls: 'TLS',
  protocol: 'PROTOCOL',
}

/** @param outcomes of the first deliveries, in order */
function reportOf({ webhookId, generation, deliveries }: LeasedWebhook, outcomes: AttemptOutcome[]): DeliveryReport {
  const failedAt = outcomes.findIndex(({ result }) => result !== 'success')
  const successes = failedAt < 0 ? outcomes.length : failedAt
  const failure = outcomes[failedAt]
  return {
    webhookId,
    generation,
    delivered: deliveries[successes - 1]?.position ?? null,
    lastStatus: (failure ?? outcomes.at(-1))?.status ?? null,
    lastError: failure ? errorOf[failure.result] : null,
    failure: failure ? { retryAfterSeconds: failure.retryAfterSeconds } : null,
  }
}
