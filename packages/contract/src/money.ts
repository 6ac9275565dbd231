import { Decimal as DefaultDecimal } from 'decimal.js'
import { z } from 'zod'
import { currencyDecimals, decimalsOf } from './currencies.ts'
import type { FieldReason } from './errors.ts'

/**
 * Decimal arithmetic that never rounds in practice and never prints an exponent. The default of decimal.js
 * rounds at 20 digits; a sum of a billion amounts of 38 digits has 47.
 */
export const Decimal = DefaultDecimal.clone({ precision: 400, toExpNeg: -9e15, toExpPos: 9e15 })
export type Decimal = DefaultDecimal

const decimalPattern = /^-?\d{1,100}(\.\d{1,100})?$/

/**
 * A decimal as it travels, in the form of `toFixed()`. decimal.js itself reads hexadecimal, in quadratic time: a few
 * hundred kilobytes of it keep a process busy for minutes.
 *
 * @throws when the text is in another form
 */
export function parseDecimal(text: unknown): Decimal {
  if (typeof text !== 'string' || !decimalPattern.test(text)) throw new Error('not a decimal')
  return new Decimal(text)
}

const amountPattern = /^(0|[1-9]\d*)(\.\d+)?$/
/** The most digits of an amount, before and after its point together. */
export const maxDigits = 38

/** An amount in canonical form with at most 38 digits: "100", "100.50". Whether its currency allows the decimals is for `amountFault`. */
export const amountText = z.string('NOT_A_STRING').check(context => {
  const reason = amountTextFault(context.value)
  if (reason) context.issues.push({ code: 'custom', message: reason, input: context.value, continue: false })
})

/** An upper-case currency code of the table. */
export const currencyCode = z
  .string('NOT_A_STRING')
  .refine(code => currencyDecimals.has(code), { error: 'UNKNOWN_CURRENCY', abort: true })

function amountTextFault(amount: string): FieldReason | null {
  if (!amountPattern.test(amount)) return 'NOT_AN_AMOUNT'
  if (amount.length - (amount.includes('.') ? 1 : 0) > maxDigits) return 'TOO_MANY_DIGITS'
  if (!/[1-9]/.test(amount)) return 'NOT_POSITIVE'
  return null
}

/** Why a well-formed amount cannot be paid in a currency, or null. */
export function amountFault(amount: string, currency: string): { reason: FieldReason; limit: number } | null {
  const point = amount.indexOf('.')
  const limit = decimalsOf(currency)
  return point >= 0 && amount.length - point - 1 > limit ? { reason: 'TOO_MANY_DECIMALS', limit } : null
}

/** A balance with exactly its currency's decimals: "899.50". */
export function formatBalance(balance: Decimal, currency: string): string {
  return balance.toFixed(decimalsOf(currency))
}
