import { z } from 'zod'

/** An integer in a body. Its error messages are FieldReasons. */
export function integerBetween(min: number, max: number) {
  return z
    .number('NOT_AN_INTEGER')
    .refine(Number.isInteger, { error: 'NOT_AN_INTEGER', abort: true })
    .min(min, 'TOO_SMALL')
    .max(max, 'TOO_LARGE')
    .meta({ type: 'integer' })
}
