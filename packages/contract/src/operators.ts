import { z } from 'zod'
import { storableTime } from './api-keys.ts'
import { plainText, reason } from './text.ts'

/** What an operator may do: an admin everything that operators can do, a viewer only reads. */
export const operatorRoles = ['admin', 'viewer'] as const
export type OperatorRole = (typeof operatorRoles)[number]

export const operatorStatuses = ['ACTIVE', 'DISABLED'] as const

/** The name of an operator, by which the audit knows them. Lower case only, so that no two names look the same. */
export const operatorName = z
  .string()
  .regex(
    /^[a-z0-9][a-z0-9._@+-]{0,63}$/,
    'the name of an operator has 1 to 64 characters: a to z, digits, and . _ @ + -, and begins with a letter or digit',
  )

export const createOperatorInput = z.object({
  name: operatorName,
  role: z.enum(operatorRoles),
  expiresAt: storableTime.optional(),
  reason: reason.optional(),
})
export type NewOperator = Omit<z.infer<typeof createOperatorInput>, 'reason'>

/** `reason` is for the audit. */
export const operatorInput = z.object({ name: operatorName, reason: reason.optional() })

/** `expiresAt`: when the new token expires; null for never. Without it, the expiry stays as it is. */
export const rotateOperatorInput = operatorInput.extend({ expiresAt: storableTime.nullable().optional() })
export type OperatorRotation = Omit<z.infer<typeof rotateOperatorInput>, 'reason'>

/** A new token, which is never shown again. */
export const issuedOperator = z.object({ name: z.string(), token: z.string(), expiresAt: z.date().nullable() })
export type IssuedOperator = z.infer<typeof issuedOperator>

/** Lists operators in the order of their names, starting after the name `after`. */
export const listOperatorsInput = z.object({
  after: plainText(64).optional(),
  limit: z.int().min(1).max(500).default(100),
})
export type OperatorListing = z.infer<typeof listOperatorsInput>

/** An operator, without the token. */
export const operatorRecord = z.object({
  name: z.string(),
  role: z.enum(operatorRoles),
  status: z.enum(operatorStatuses),
  expiresAt: z.date().nullable(),
  createdAt: z.date(),
  /** When the operator was created, disabled or got a new token. */
  updatedAt: z.date(),
  /** Whether the row was modified or written outside the service: then its token is refused. */
  isModified: z.boolean(),
})
export type OperatorRecord = z.infer<typeof operatorRecord>
/** `next`: the `after` of the next page; null on the last page. */
export const operatorPage = z.object({ operators: z.array(operatorRecord), next: z.string().nullable() })
export type OperatorPage = z.infer<typeof operatorPage>

/** Whose token a call has. */
export const session = z.object({
  /** As the audit records it: `operator:NAME`, or `role:name` of a service token. */
  actor: z.string(),
  name: z.string(),
  role: z.enum(operatorRoles),
  /** When the token expires; null for never, as for service tokens. */
  expiresAt: z.date().nullable(),
})
export type Session = z.infer<typeof session>
