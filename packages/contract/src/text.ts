import { z } from 'zod'

/**
 * Text of up to `max` Unicode code points. U+0000 is rejected because PostgreSQL cannot store it, lone surrogates because
 * they are not valid Unicode.
 */
export function plainText(max: number) {
  return (
    z
      .string('NOT_A_STRING')
      // A code point has one or two code units.
      .refine(text => text.length <= max || (text.length <= 2 * max && [...text].length <= max), {
        error: 'TOO_LONG',
        abort: true,
        params: { limit: max },
      })
      .refine(text => !text.includes('\u0000') && text.isWellFormed(), { error: 'BAD_CHARACTER' })
      .meta({ maxLength: max, pattern: '^[^\\u0000]*$' })
  )
}

// The same rules as patterns, for the OpenAPI document.
const inLine = '[^\\u0000-\\u001f\\u007f-\\u009f]'
const visible = '[^\\s\\u0000-\\u001f\\u007f-\\u009f]'

/** A name that operators may give to an object: one line, which may be empty. */
export const label = plainText(128)
  .refine(text => !/\p{Cc}/u.test(text), { error: 'NOT_ONE_LINE' })
  .meta({ pattern: `^${inLine}*$` })

/** A name that operators must give: a label that is not blank. */
export const displayName = label
  .refine(text => text.trim() !== '', { error: 'EMPTY' })
  .meta({ minLength: 1, pattern: `^${inLine}*${visible}${inLine}*$` })

const remarkLength = 256
/** A client's note on a transfer or a hold. */
export const remark = plainText(remarkLength).describe(`Text of up to ${remarkLength} characters.`)

/**
 * An ID or bizId of something that exists. The schema accepts any string, because malformed and unknown ones get the same
 * error. The OpenAPI document states the length that none exceeds.
 */
export function nameOfExisting(description: string) {
  return z.string('NOT_A_STRING').meta({ maxLength: 64, description })
}

/** Text of 1 to `max` visible ASCII characters. */
export function visibleText(max: number) {
  return z
    .string('NOT_A_STRING')
    .min(1, 'EMPTY')
    .max(max, 'TOO_LONG')
    .regex(/^[!-~]+$/, 'NOT_VISIBLE_ASCII')
}

const referenceLength = 64
/** What a transfer or a hold belongs to in the client's own system, such as an invoice. Lists can filter by it. */
export const reference = visibleText(referenceLength).describe(
  `What it belongs to, such as an invoice: 1 to ${referenceLength} visible ASCII characters.`,
)

/** Why an operator or a service does something, for the audit: a sentence, a ticket. One line that is not blank. */
export const reason = plainText(256)
  .refine(text => !/\p{Cc}/u.test(text), { error: 'NOT_ONE_LINE' })
  .refine(text => text.trim() !== '', { error: 'EMPTY' })
