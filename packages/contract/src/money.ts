import { Decimal as DefaultDecimal } from 'decimal.js'
import { z } from 'zod'
import { currencyDecimals, decimalsOf } from './currencies.ts'
import type { FieldReason } from './errors.ts'

/**
 * Decimal arithmetic that never rounds in practice and never prints an exponent. By default, decimal.js rounds to 20
 * digits; a sum of a billion amounts of 38 digits has 47.
 */
export const Decimal = DefaultDecimal.clone({ precision: 400, toExpNeg: -9e15, toExpPos: 9e15 })
export type Decimal = DefaultDecimal

const decimalPattern = /^-?\d{1,100}(\.\d{1,100})?$/

/**
 * Parses a decimal in the form of `toFixed()`. Untrusted text must not reach the constructor of decimal.js: it also parses
 * hexadecimal, in quadratic time, so a few hundred kilobytes would block the process for minutes.
 *
 * @throws Error if the text has another form
 */
export function parseDecimal(text: unknown): Decimal {
  if (typeof text !== 'string' || !decimalPattern.test(text)) throw new Error('not a decimal')
  return new Decimal(text)
}

/** An amount that core computed, such as a balance. */
export const decimal = z.custom<Decimal>(value => Decimal.isDecimal(value), { error: 'NOT_AN_AMOUNT' })

const amountPattern = /^(0|[1-9]\d*)(\.\d+)?$/
/** Maximum number of digits of an amount, before and after the decimal point together. */
export const maxDigits = 38

/** A positive amount with at most 38 digits, such as "100" or "100.50". `amountFault` checks the decimals of its currency. */
export const amountText = z
  .string('NOT_A_STRING')
  .check(context => {
    const reason = amountTextFault(context.value)
    if (reason) context.issues.push({ code: 'custom', message: reason, input: context.value, continue: false })
  })
  .describe(
    `Decimal above zero, such as \`100.50\`: up to ${maxDigits} digits, no more decimals than the currency has, no sign, no exponent, and no leading zero except before the point.`,
  )
  .meta({
    // The digits of a fraction are limited by the length, which includes the decimal point.
    pattern: `^([1-9][0-9]{0,${maxDigits - 1}}|[1-9][0-9]*\\.[0-9]+|0\\.[0-9]*[1-9][0-9]*)$`,
    maxLength: maxDigits + 1,
  })

/** A currency code, upper case, that is in the table of currencies. */
export const currencyCode = z
  .string('NOT_A_STRING')
  .refine(code => currencyDecimals.has(code), { error: 'UNKNOWN_CURRENCY', abort: true })
  .meta({ enum: [...currencyDecimals.keys()] })

function amountTextFault(amount: string): FieldReason | null {
  if (!amountPattern.test(amount)) return 'NOT_AN_AMOUNT'
  if (amount.length - (amount.includes('.') ? 1 : 0) > maxDigits) return 'TOO_MANY_DIGITS'
  if (!/[1-9]/.test(amount)) return 'NOT_POSITIVE'
  return null
}

/** Why an amount of `amountText` is invalid in a currency; null if it is valid. */
export function amountFault(amount: string, currency: string): { reason: FieldReason; limit: number } | null {
  const point = amount.indexOf('.')
  const limit = decimalsOf(currency)
  return point >= 0 && amount.length - point - 1 > limit ? { reason: 'TOO_MANY_DECIMALS', limit } : null
}

/** Checks the decimals of the amount of a body. Its fault is that of the field `amount`. */
export function checkAmount(context: z.core.ParsePayload<{ amount: string; currency: string }>): void {
  const { amount, currency } = context.value
  const fault = amountFault(amount, currency)
  if (!fault) return
  const { reason, limit } = fault
  context.issues.push({ code: 'custom', message: reason, path: ['amount'], params: { limit }, input: amount })
}

/** Formats a balance with exactly the decimals of its currency: "899.50". */
export function formatBalance(balance: Decimal, currency: string): string {
  return balance.toFixed(decimalsOf(currency))
}
