/** Parsers for the values of flags. Each throws the end of a sentence that begins with the name of the flag. */
import {
  amountText,
  beforeNumbers,
  currencyCode,
  Decimal,
  displayName,
  type IdKind,
  idPrefixes,
  reason,
  remark,
  rotateKeyInput,
  type Scope,
  scopes,
  transferBizId,
  userId,
  uuidFromId,
  walletBizId,
} from '@workspace-wallet/contract'
import { nearest } from '@workspace-wallet/runtime'
import { listOf } from '../command-line/sentence.ts'

type Schema<Value> = { safeParse(text: string): { success: true; data: Value } | { success: false } }

export const parseAmount = parserFor(
  amountText,
  'must be an amount greater than zero, such as 100.50, with at most 38 digits',
)
/** Parses an end of a range of balances or amounts. */
export function parseBalance(text: string): Decimal {
  if (!/^\d{1,38}(\.\d{1,18})?$/.test(text)) throw new Error(`must be an amount such as 100.50, not "${text}"`)
  return new Decimal(text)
}

export const parseCurrency = parserFor(currencyCode, 'must be a currency code in upper case, such as USD, EUR or BTC')
export const parseUser = parserFor(userId, 'must be 1 to 128 letters, digits or any of . _ @ : + -')
export const parseName = parserFor(
  displayName,
  'must have 1 to 128 characters, at least one of them visible, and no control characters',
)
export const parseBizId = parserFor(
  transferBizId,
  'must be 1 to 64 letters, digits or any of . _ : -, begin with a letter or digit, and be neither "wallet" nor an ID of this service',
)

export const parseWalletBizId = parserFor(
  walletBizId,
  'must be 1 to 64 letters, digits or any of . _ : -, begin with a letter or digit, and not be the ID of a wallet',
)

export const parseReason = parserFor(reason, 'must have 1 to 256 characters on one line, at least one of them visible')

export const parseRemark = parserFor(remark, 'must have at most 256 characters')

/** The path of a file. */
export function parseFile(text: string): string {
  if (text === '') throw new Error('must be the path of a file')
  return text
}

/** Parses an ID of this kind. Checks its form only. */
export function parseId(kind: IdKind): (text: string) => string {
  return text => {
    if (!uuidFromId(kind, text))
      throw new Error(`must be an ID, which is ${idPrefixes[kind]}_ and 26 letters and digits, not "${text}"`)
    return text
  }
}

export function parseScopes(text: string): Scope[] {
  const names = splitList(text)
  if (names.length === 0) throw new Error(`needs at least one of ${listOf(scopes)}`)
  return names.map(oneOf('scope', scopes))
}

/** @param kind the kind of the values, in the singular */
export function oneOf<Value extends string>(kind: string, values: readonly Value[]): (text: string) => Value {
  return text => {
    const value = values.find(each => each === text)
    if (value !== undefined) return value
    const match = nearest(text, values)
    const hint = match ? `did you mean ${match}? The` : 'the'
    throw new Error(`contains "${text}", which is not a valid ${kind}: ${hint} valid ones are ${listOf(values)}`)
  }
}

/** Splits a comma-separated list, such as one of addresses and CIDR blocks. Empty text is an empty list. */
export function splitList(text: string): string[] {
  return text.trim() === '' ? [] : text.split(',').map(entry => entry.trim())
}

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** Parses "30s", "15m", "24h" or "7d" into milliseconds. */
export function parseDuration(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (!count) throw new Error(`must be a duration such as 30s, 15m, 24h or 7d, not "${text}"`)
  return Number(count) * unitMs[unit as keyof typeof unitMs]
}

const maxGraceMs = rotateKeyInput.shape.graceMs.unwrap().maxValue!

export function parseGrace(text: string): number {
  const graceMs = parseDuration(text)
  if (graceMs > maxGraceMs) throw new Error(`must be at most ${maxGraceMs / unitMs.d}d`)
  return graceMs
}

/** Parses the new expiry of an existing key: like parseExpiry, or "now" or "never". */
export function parseNewExpiry(text: string): Date | null {
  if (text === 'never') return null
  // A time long ago stands for now, because the clock of core may differ from the one here.
  return text === 'now' ? new Date(0) : parseExpiry(text)
}

/** Parses an ISO 8601 date, a time with a zone, or a duration before now. */
export function parsePast(text: string, now = Date.now()): Date {
  if (/^\d+[smhd]$/.test(text)) return new Date(now - parseDuration(text))
  return parseMoment(text)
}

/** Parses the position of an event: a whole number. */
export function parsePosition(text: string): number {
  if (!/^\d{1,15}$/.test(text)) throw new Error(`must be a whole number from the POSITION column, not "${text}"`)
  return Number(text)
}

/** Parses the number of an entry of a list. */
export function parsePlace(text: string): string {
  if (beforeNumbers.safeParse(text).success) return text
  throw new Error(`must be a number from the NUMBER column, or what a list said at its end, not "${text}"`)
}

/** Parses the number of a place of core: 0 is that of DATABASE_URL. */
export function parsePlaceNumber(text: string): number {
  if (!/^\d{1,4}$/.test(text)) throw new Error(`must be the number of a place, such as 1, not "${text}"`)
  return Number(text)
}

/** Parses the numbers of places, such as "0,2". */
export function parsePlaces(text: string): number[] {
  if (!/^\d{1,2}(,\d{1,2})*$/.test(text)) throw new Error(`must be numbers of places such as 0 or 1,2, not "${text}"`)
  return text.split(',').map(Number)
}

/** Parses a whole number from 1 to 10,000. */
export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text) || Number(text) > 10_000)
    throw new Error(`must be a whole number from 1 to 10000, not "${text}"`)
  return Number(text)
}

/** Parses an ISO 8601 date (midnight UTC), a time with a zone, or a duration from now. */
export function parseExpiry(text: string, now = Date.now()): Date {
  if (/^\d+[smhd]$/.test(text)) return new Date(now + parseDuration(text))
  return parseMoment(text)
}

function parseMoment(text: string): Date {
  const [, day] = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/.exec(text) ?? []
  const date = new Date(text)
  if (!day || Number.isNaN(date.getTime()) || !isRealDay(day))
    throw new Error(
      `must be a date, a time with a zone or a duration (2027-01-31, 2027-01-31T12:00:00Z, 90d), not "${text}"`,
    )
  return date
}

/** Parses an ISO 8601 time with a zone. A date alone is none. */
export function parseTime(text: string): Date {
  const isTime = /^\d{4}-\d\d-\d\dT\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d)$/.test(text)
  const date = new Date(text)
  if (!isTime || Number.isNaN(date.getTime()) || !isRealDay(text.slice(0, 10)))
    throw new Error(`must be a time with its zone, such as 2027-01-31T12:00:00Z, not "${text}"`)
  return date
}

/** Date accepts 30 February and turns it into a day in March. */
function isRealDay(day: string): boolean {
  return new Date(day).toISOString().startsWith(day)
}

export function parserFor<Value>(schema: Schema<Value>, requirement: string): (text: string) => Value {
  return text => {
    const result = schema.safeParse(text)
    if (!result.success) throw new Error(`${requirement}, not "${text}"`)
    return result.data
  }
}
