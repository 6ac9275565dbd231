import { z } from 'zod'

/**
 * Text that people write: up to `max` characters (code points, as a person counts them). PostgreSQL cannot
 * store U+0000, and a lone surrogate is not text.
 */
export function plainText(max: number) {
  return z
    .string('NOT_A_STRING')
    .refine(text => text.length <= max || [...text].length <= max, { error: 'TOO_LONG', abort: true })
    .refine(text => !text.includes('\u0000') && text.isWellFormed(), { error: 'BAD_CHARACTER' })
}

/** A name that operators give: one line, not blank. */
export const displayName = plainText(128).refine(text => text.trim() !== '' && !/\p{Cc}/u.test(text), {
  error: 'a name needs at least one visible character and no control characters',
})
