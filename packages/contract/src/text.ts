import { z } from 'zod'

/**
 * Text of up to `max` Unicode code points. U+0000 is rejected because PostgreSQL cannot store it, lone surrogates because
 * they are not valid Unicode.
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

/** A name that operators may give to an object: one line, which may be empty. */
export const label = plainText(128).refine(text => !/\p{Cc}/u.test(text), { error: 'has control characters' })

/** A name that operators must give: a label that is not blank. */
export const displayName = label.refine(text => text.trim() !== '', { error: 'is blank' })
