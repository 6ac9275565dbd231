import { z } from 'zod'

/** How long a courier may deliver the events of a lease, in milliseconds. Afterwards another one may get them. */
export const leaseMs = 60_000
export const maxLeasedWebhooks = 64
/** Maximum number of deliveries of one webhook in a lease. */
export const maxDeliveries = 100
/** Maximum size of the bodies of a lease, in characters, except that each webhook gets at least one delivery. */
export const maxLeaseLength = 1_000_000

/** Leases up to `size` webhooks that have events to deliver. */
export const leaseInput = z.object({ size: z.int().min(1).max(maxLeasedWebhooks) })

/**
 * One event to deliver. `body`: the JSON text to send, which the signature covers. `headers`: `webhook-id`,
 * `webhook-timestamp` and `webhook-signature` of Standard Webhooks 1.0.
 */
export const delivery = z.object({
  position: z.int(),
  body: z.string(),
  headers: z.record(z.string(), z.string()),
})
export type Delivery = z.infer<typeof delivery>

/**
 * A webhook that this courier alone may deliver to. With `concurrency` 1, each delivery begins after the success of the one
 * before. `leaseMs`: how long, counted from when the call began. `deliveries`: at least one, in order of position.
 */
export const leasedWebhook = z.object({
  webhookId: z.string(),
  workspaceId: z.string(),
  generation: z.int(),
  url: z.string(),
  concurrency: z.int(),
  leaseMs: z.int(),
  deliveries: z.array(delivery),
})
export type LeasedWebhook = z.infer<typeof leasedWebhook>
export const lease = z.object({ webhooks: z.array(leasedWebhook) })

/**
 * The end of a lease. `delivered`: the position of the last of the successful deliveries that have no unsuccessful one before
 * them; null without one. `lastStatus`: the HTTP status of the failure, otherwise of the last success; null without an
 * answer. `failure`: null if nothing failed; `retryAfterSeconds` is the `Retry-After` of the answer, null without one. Without
 * any attempt, all three are null.
 */
export const reportInput = z.object({
  webhookId: z.string(),
  generation: z.int(),
  delivered: z.int().min(1).nullable(),
  lastStatus: z.int().min(100).max(999).nullable(),
  failure: z.object({ retryAfterSeconds: z.int().min(0).nullable() }).nullable(),
})
export type Report = z.infer<typeof reportInput>

/** `accepted`: false if the webhook was changed or leased again since, so that the report had no effect. */
export const reportAnswer = z.object({ accepted: z.boolean() })
