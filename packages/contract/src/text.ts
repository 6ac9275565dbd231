import { z } from 'zod'

/**
 * Text that people write: up to `max` characters (code points, as a person counts them). PostgreSQL cannot
 * store U+0000, and a lone surrogate is not text.
 */
export function plainText(max: number) {
  return z
    .string('NOT_A_STRING')
    .refine(text => text.length <= max || [...text].length <= max, {
      error: 'TOO_LONG',
      abort: true,
      params: { limit: max },
    })
    .refine(text => !text.includes('\u0000') && text.isWellFormed(), { error: 'BAD_CHARACTER' })
}

/** A remark that operators make on something of theirs: one line, which may be empty. */
export const label = plainText(128).refine(text => !/\p{Cc}/u.test(text), { error: 'has control characters' })

/** A name that operators give: a label that is not blank. */
export const displayName = label.refine(text => text.trim() !== '', { error: 'is blank' })
