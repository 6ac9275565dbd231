import { z } from 'zod'
import { storableTime } from './api-keys.ts'
import { beforeNumbers } from './audit.ts'
import { plainText, visibleText } from './text.ts'

/** Maximum number of refused calls in one report. */
export const refusalsPerReport = 100

/** The length of the sentence of a refused call, in characters. What is longer is cut off. */
export const refusalDetailLength = 300

/** The steps that can refuse a call, in the order of section 5.3. `endpoint`: after all others. */
export const refusalSteps = [
  'key',
  'key-status',
  'workspace',
  'timestamp-and-nonce',
  'signature',
  'rate-limit',
  'address',
  'scope',
  'endpoint',
] as const
export type RefusalStep = (typeof refusalSteps)[number]

/** Text that the code of a gateway chooses, not its clients. */
const word = visibleText(120)

/**
 * A refused call of the public API, as a gateway reports it. It has no body, no header but the ID of the key, and no secret. What
 * clients have chosen is limited in length, and in the sentence only.
 */
export const refusalReport = z.object({
  /** By the clock of the gateway; core limits it to the last hour. */
  at: storableTime,
  method: visibleText(16),
  /** The path of the endpoint with the names of its parameters; `none` if there is no such endpoint. */
  route: word,
  code: visibleText(16),
  /** One of `refusalSteps`, or one of a newer gateway. */
  step: visibleText(32),
  /** The sentence for people, in English. */
  detail: plainText(refusalDetailLength),
  /** The key that the call named, if it has the form of one; it need not exist. */
  apiKey: visibleText(64).nullable(),
  address: visibleText(64),
  requestId: visibleText(64),
  /** Whether the call had a valid signature of that key. */
  isSigned: z.boolean(),
})
export type RefusalReport = z.infer<typeof refusalReport>

/** `dropped`: refused calls since the last report that the gateway has not kept. */
export const reportRefusalsInput = z.object({
  refusals: z.array(refusalReport).max(refusalsPerReport),
  dropped: z.int().min(0),
})

/**
 * A refused call as core has stored it. `gateway`: the name of the service token of the gateway. Whoever has the role of the service
 * can store other texts than gateways may report.
 */
export const refusal = z.object({
  id: z.int(),
  gateway: z.string(),
  at: z.date(),
  method: z.string(),
  route: z.string(),
  code: z.string(),
  step: z.string(),
  detail: z.string(),
  apiKey: z.string().nullable(),
  address: z.string(),
  requestId: z.string(),
  isSigned: z.boolean(),
})
export type Refusal = z.infer<typeof refusal>

/** Refused calls of the last seven days that match all of these, newest first. `before`: `next` of the previous page. */
export const listRefusalsInput = z.object({
  apiKey: plainText(64).optional(),
  requestId: plainText(64).optional(),
  code: plainText(16).optional(),
  address: plainText(64).optional(),
  before: beforeNumbers.optional(),
  limit: z.int().min(1).max(500).default(50),
})
export type RefusalListing = z.infer<typeof listRefusalsInput>

export const refusalPage = z.object({ refusals: z.array(refusal), next: z.string().nullable() })
export type RefusalPage = z.infer<typeof refusalPage>
