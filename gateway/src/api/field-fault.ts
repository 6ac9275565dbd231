import { DomainError, type FieldReason, fieldReasons } from '@workspace-wallet/contract'
import type { z } from 'zod'

/** S012 for one field of a body or one parameter of a query. */
export function fieldFault(field: string, reason: FieldReason, limit?: string | number): DomainError {
  return new DomainError('S012', limit === undefined ? { field, reason } : { field, reason, limit })
}

/** S012 for what zod found. Our schemas give the reason as message. */
export function issueFault(field: string, issue: z.core.$ZodIssue): DomainError {
  const reason = issue.message as FieldReason
  if (!fieldReasons.includes(reason)) throw new Error(`a schema gives no reason for ${field}: ${issue.message}`)
  return fieldFault(field, reason, limitOf(issue))
}

/** The bound that was broken, or the values that are allowed, where there are any. */
function limitOf(issue: z.core.$ZodIssue): string | number | undefined {
  if (issue.code === 'too_big') return Number(issue.maximum)
  if (issue.code === 'invalid_value') return issue.values.join(', ')
  return issue.code === 'custom' ? (issue.params?.limit as string | number | undefined) : undefined
}

/** A name that a client made up, short enough to repeat. */
export function shown(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}…` : name
}
