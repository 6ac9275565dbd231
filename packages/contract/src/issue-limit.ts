import type { z } from 'zod'

/** The bound that a value exceeds, or the values that are allowed. Undefined for issues without one. */
export function issueLimit(issue: z.core.$ZodIssue): string | number | undefined {
  if (issue.code === 'too_big') return Number(issue.maximum)
  if (issue.code === 'too_small' && issue.origin === 'number') return Number(issue.minimum)
  if (issue.code === 'invalid_value') return issue.values.join(', ')
  return issue.code === 'custom' ? (issue.params?.limit as string | number | undefined) : undefined
}
