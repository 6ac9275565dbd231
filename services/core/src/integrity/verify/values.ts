import type { Decimal } from '@workspace-wallet/contract'
import { bigint, decimal } from '../../database/tables/columns.ts'

// Parsers for the text of columns. They never throw: a damaged value becomes one that equals nothing.

/** NaN for anything but a safe integer. */
export const wholeOf = (text: string | null): number => bigint.parse(text)

/** NaN for anything but a finite number, and then for every sum with it. */
export const decimalOf = (text: string | null): Decimal => decimal.parse(text)

// Neighbouring rows are often of one batch, with the same time.
let lastText: string | null = null
let lastDate = new Date(Number.NaN)

/** @param text a time as PostgreSQL writes it, "2026-11-02 10:11:12.345+00"; anything else gives an invalid date */
export function dateOf(text: string | null): Date {
  if (text === lastText) return lastDate
  lastText = text
  lastDate = new Date(text === null ? Number.NaN : `${text.slice(0, 10)}T${text.slice(11, -3)}Z`)
  return lastDate
}
