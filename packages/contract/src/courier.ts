import { z } from 'zod'
import { deliveryErrors } from './webhooks.ts'

/** How long a lease lasts, in milliseconds. Afterwards, another courier can lease the webhook. */
export const leaseMs = 60_000
export const maxLeasedWebhooks = 64
/** Maximum number of deliveries of one webhook in a lease. */
export const maxDeliveries = 100
/** Maximum size of all bodies of a response, in characters. Each webhook gets at least one delivery, whatever its size. */
export const maxLeaseLength = 1_000_000

/** Maximum number of leases that a courier has at a time. */
export const maxHeldLeases = 1024

/** `generation`: random, another one after each lease and each change. */
const leaseName = z.object({ webhookId: z.string(), generation: z.uuid() })
export type LeaseName = z.infer<typeof leaseName>

/**
 * Leases up to `size` webhooks that have events to deliver. `except`: workspaces to leave out; each other one gets at most one lease. Null
 * sets no such limit. `held`: the leases that the courier has and has not reported. With size 0, the call only finds out which of them are
 * revoked.
 */
export const leaseInput = z.object({
  size: z.int().min(0).max(maxLeasedWebhooks),
  except: z.array(z.string()).max(maxHeldLeases).nullable().default(null),
  held: z.array(leaseName).max(maxHeldLeases).default([]),
})

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
 * A webhook that only this courier delivers to until the lease ends. With `concurrency` 1, a delivery begins only after the
 * one before has succeeded. `leaseMs`: the duration, from the start of the call. `deliveries`: at least one, in order of
 * position.
 */
export const leasedWebhook = z.object({
  webhookId: z.string(),
  workspaceId: z.string(),
  generation: z.uuid(),
  url: z.string(),
  concurrency: z.int(),
  leaseMs: z.int(),
  deliveries: z.array(delivery),
})
export type LeasedWebhook = z.infer<typeof leasedWebhook>

/**
 * `revoked`: the held leases whose webhook was changed, deleted or leased again since, or whose workspace is not open. The
 * courier begins no further attempt of them, and reports them when those in progress have ended.
 */
export const lease = z.object({ webhooks: z.array(leasedWebhook), revoked: z.array(leaseName) })

/**
 * The outcome of a lease, which ends it. `delivered`: the position up to which all deliveries succeeded; null if the first one
 * did not. `lastStatus`: the HTTP status of the failure or, if nothing failed, of the last success; null without a response.
 * `lastError`: why the failure has no status. `failure`: null if nothing failed; `retryAfterSeconds` is the `Retry-After` of the
 * answer, null without one. If no attempt was made, all four are null.
 */
export const deliveryReport = z.object({
  webhookId: z.string(),
  generation: z.uuid(),
  delivered: z.int().min(1).nullable(),
  lastStatus: z.int().min(100).max(999).nullable(),
  lastError: z.enum(deliveryErrors).nullable(),
  failure: z.object({ retryAfterSeconds: z.int().min(0).nullable() }).nullable(),
})
export type DeliveryReport = z.infer<typeof deliveryReport>

/** `accepted`: false if the report had no effect, because the webhook was changed or leased again since. */
export const deliveryReportAnswer = z.object({ accepted: z.boolean() })
