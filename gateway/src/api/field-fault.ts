import { DomainError, type FieldFault, type FieldReason, fieldReasons, issueLimit } from '@workspace-wallet/contract'
import { nearest } from '@workspace-wallet/runtime'
import type { z } from 'zod'

/** S012 for one field of a body or one parameter. */
export function fieldFault(
  field: string,
  reason: FieldReason,
  more: Omit<FieldFault, 'field' | 'reason'> = {},
): DomainError {
  return new DomainError('S012', { field, reason, ...more })
}

/** S012 for an unknown name: with the known name that it is probably meant to be, or else with all known names. */
export function unknownFault(
  field: string,
  name: string,
  known: readonly string[],
  more: Pick<FieldFault, 'index'> = {},
): DomainError {
  const similar = nearest(name, known)
  return fieldFault(field, 'UNKNOWN', { ...(similar ? { nearest: similar } : { limit: known.join(', ') }), ...more })
}

/** S012 for an issue of zod. The message of the issue is a FieldReason. */
export function issueFault(field: string, issue: z.core.$ZodIssue, more: Pick<FieldFault, 'index'> = {}): DomainError {
  const reason = issue.message as FieldReason
  if (!fieldReasons.includes(reason))
    throw new Error(`the schema of ${field} has a message that is not a FieldReason: ${issue.message}`)
  const limit = issueLimit(issue)
  return fieldFault(field, reason, limit === undefined ? more : { limit, ...more })
}

/** An unknown name that a client sent, short enough to return. */
export function shortened(name: string): string {
  return name.length > 64 ? `${name.slice(0, 64)}…` : name
}
