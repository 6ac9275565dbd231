import { z } from 'zod'
import { webhookBizId } from './biz-ids.ts'
import { workspaceCall } from './caller.ts'
import { eventTypes } from './events.ts'
import { integerBetween } from './integer.ts'
import { pageOf, pageRequest } from './pages.ts'
import { nameOfExisting, reason } from './text.ts'
import { checkWebhookUrl, maxWebhookUrlLength, webhookUrlPattern } from './webhook-urls.ts'

/** An ACTIVE webhook gets deliveries. A PAUSED one keeps its position in the event log. */
export const webhookStatuses = ['ACTIVE', 'PAUSED'] as const
export type WebhookStatus = (typeof webhookStatuses)[number]

/**
 * Why an attempt got no HTTP response. ADDRESS: the name of the URL does not resolve, or resolves to an address that is not
 * allowed. Those are one error, because telling them apart would show which internal names exist. PROTOCOL: the response is
 * not HTTP.
 */
export const deliveryErrors = ['ADDRESS', 'CONNECTION', 'TLS', 'TIMEOUT', 'PROTOCOL'] as const
export type DeliveryError = (typeof deliveryErrors)[number]

/** Maximum number of webhooks of a workspace that are not deleted. */
export const maxWebhooks = 16
export const maxWebhookConcurrency = 16
export const defaultWebhookGraceSeconds = 86_400
const maxGraceSeconds = 604_800

const url = z
  .string('NOT_A_STRING')
  .min(1, 'EMPTY')
  .max(maxWebhookUrlLength, 'TOO_LONG')
  .check(checkWebhookUrl)
  .meta({ pattern: webhookUrlPattern })
  .describe(
    `Where events are sent: an https URL of up to ${maxWebhookUrlLength} visible ASCII characters, without user name, password and fragment. Its port is 443, or 1024 or higher. Its host must have public addresses only.`,
  )
const types = z
  .array(z.enum(eventTypes, 'NOT_ONE_OF'), 'NOT_AN_ARRAY')
  .max(eventTypes.length, 'TOO_MANY')
  .refine(list => new Set(list).size === list.length, { error: 'REPEATED' })
  .meta({ uniqueItems: true, description: 'The types of events to send. Empty: all.' })
const concurrency = integerBetween(1, maxWebhookConcurrency).describe(
  `How many deliveries may be in progress at a time, 1 to ${maxWebhookConcurrency}. With 1, deliveries are strictly in order of position.`,
)
const webhookId = nameOfExisting('`whk_…`')

/** The body of `POST /api/v1/webhook/command/create`. */
export const createWebhookBody = z.strictObject({
  url,
  bizId: webhookBizId,
  types: types.optional(),
  concurrency: concurrency.optional(),
})

/**
 * The body of `POST /api/v1/webhook/command/update`. Fields that are left out do not change. In this and the following
 * bodies, the webhook ID can be any string: malformed and unknown IDs get the same error, E002.
 */
export const updateWebhookBody = z.strictObject({
  webhookId,
  url: url.optional(),
  types: types.optional(),
  concurrency: concurrency.optional(),
  status: z
    .enum(webhookStatuses, 'NOT_ONE_OF')
    .optional()
    .describe(
      '`PAUSED` stops deliveries. `ACTIVE` resumes them after `position`. If deliveries were failing, it makes the next attempt at once.',
    ),
})

/** The body of `POST /api/v1/webhook/command/rotate`. */
export const rotateWebhookBody = z.strictObject({
  webhookId,
  graceSeconds: integerBetween(0, maxGraceSeconds)
    .optional()
    .describe(
      `How long deliveries are also signed with the previous secret, 0 to ${maxGraceSeconds} seconds. Default: ${defaultWebhookGraceSeconds}.`,
    ),
})

/** The body of `POST /api/v1/webhook/command/seek`. */
export const seekWebhookBody = z.strictObject({
  webhookId,
  after: integerBetween(0, Number.MAX_SAFE_INTEGER).describe(
    'A position between 0 and the end of the log. The next delivery is the first event after it.',
  ),
})

/** The body of `POST /api/v1/webhook/command/delete`. */
export const deleteWebhookBody = z.strictObject({ webhookId })

/** A webhook, without its secrets. */
export const webhook = z.object({
  webhookId: z.string(),
  bizId: z.string(),
  url: z.string(),
  /** Empty: all types. */
  types: z.array(z.enum(eventTypes)),
  concurrency: z.int(),
  status: z.enum(webhookStatuses),
  /** Every event up to this position is delivered or of another type. */
  position: z.int(),
  /** The HTTP status of the last attempt; null if it got no response, or if there was none. */
  lastStatus: z.int().nullable(),
  /** Why the last attempt got no response; null if it got one, or if there was none. */
  lastError: z.enum(deliveryErrors).nullable(),
  lastAttemptAt: z.date().nullable(),
  /** When the current series of failures began; null after a success. */
  failingSince: z.date().nullable(),
  /** Until when deliveries are also signed with the previous secret. */
  previousSecretUntil: z.date().nullable(),
  createdAt: z.date(),
  updatedAt: z.date(),
})
export type Webhook = z.infer<typeof webhook>

/**
 * `secret`: `whsec_` and 32 random bytes in base64, the key of the signatures (Standard Webhooks 1.0). Null when a create is
 * repeated: a secret is returned once.
 */
export const issuedWebhook = webhook.extend({ secret: z.string().nullable() })
export type IssuedWebhook = z.infer<typeof issuedWebhook>
export const rotatedWebhook = webhook.extend({ secret: z.string() })
export type RotatedWebhook = z.infer<typeof rotatedWebhook>
export const deletedWebhook = z.object({ webhookId: z.string() })
export type DeletedWebhook = z.infer<typeof deletedWebhook>

export const createWebhookInput = workspaceCall.extend(createWebhookBody.shape)
export type CreateWebhookInput = z.infer<typeof createWebhookInput>
/** `reason` is for the audit. */
export const updateWebhookInput = workspaceCall.extend({ ...updateWebhookBody.shape, reason: reason.optional() })
export type UpdateWebhookInput = z.infer<typeof updateWebhookInput>
export const rotateWebhookInput = workspaceCall.extend(rotateWebhookBody.shape)
export type RotateWebhookInput = z.infer<typeof rotateWebhookInput>
/** `reason` is for the audit. */
export const seekWebhookInput = workspaceCall.extend({ ...seekWebhookBody.shape, reason: reason.optional() })
export type SeekWebhookInput = z.infer<typeof seekWebhookInput>
export const webhookInput = workspaceCall.extend(deleteWebhookBody.shape)
export type WebhookInput = z.infer<typeof webhookInput>
/** `reason` is for the audit. */
export const deleteWebhookInput = webhookInput.extend({ reason: reason.optional() })

export const webhookSortFields = ['createdAt', 'updatedAt', 'status'] as const
export const webhookFilter = z.object({ status: z.enum(webhookStatuses).optional() })
export const listWebhooksInput = workspaceCall.extend({
  filter: webhookFilter.default({}),
  ...pageRequest(webhookSortFields).shape,
})
export type ListWebhooksInput = z.infer<typeof listWebhooksInput>
export const webhookPage = pageOf(webhook)

/** The webhooks of a workspace whose rows were modified or written outside the service: the first hundred. */
export const modifiedWebhooksInput = z.object({ workspaceId: z.string() })
export const modifiedWebhooks = z.object({ webhookIds: z.array(z.string()) })
