import { Decimal } from '@workspace-wallet/contract'

/** How a verification reads what PostgreSQL writes: nothing that stands in a column makes it fail. */

/** NaN for anything but a whole number that is exact in JavaScript: it equals nothing. */
export function wholeOf(text: string | null): number {
  const number = text === null ? Number.NaN : Number(text)
  return Number.isSafeInteger(number) ? number : Number.NaN
}

/** NaN for what is no finite number: it equals nothing, and neither does any sum with it. */
export function decimalOf(text: string | null): Decimal {
  return new Decimal(text === null || !/^-?\d/.test(text) ? Number.NaN : text)
}

export function bytesOf(text: string | null): Buffer {
  return text === null ? Buffer.alloc(0) : Buffer.from(text.slice('\\x'.length), 'hex')
}

// Neighbours often are of one batch, and so of one time.
let lastText: string | null = null
let lastDate = new Date(Number.NaN)

/** A time as PostgreSQL writes it, "2026-11-02 10:11:12.345+00". An invalid date for anything else. */
export function dateOf(text: string | null): Date {
  if (text === lastText) return lastDate
  lastText = text
  lastDate = new Date(text === null ? Number.NaN : `${text.slice(0, 10)}T${text.slice(11, -3)}Z`)
  return lastDate
}
