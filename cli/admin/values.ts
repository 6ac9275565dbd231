/** What the texts behind flags become. Each parser throws the end of a sentence that begins with the flag's name. */
import {
  amountText,
  bizId,
  currencyCode,
  displayName,
  type IdKind,
  idPrefixes,
  rotateKeyInput,
  type Scope,
  scopes,
  userId,
  uuidFromId,
} from '@workspace-wallet/contract'
import { listOf } from '../command-line/sentence.ts'
import { nearest } from './nearest.ts'

type Schema<Value> = { safeParse(text: string): { success: true; data: Value } | { success: false } }

export const parseAmount = checked(
  amountText,
  'must be an amount greater than zero such as 100.50, of 38 digits at most',
)
export const parseCurrency = checked(currencyCode, 'must be a currency code in capitals, such as USD, EUR or BTC')
export const parseUser = checked(userId, 'must be 1 to 128 letters, digits or any of . _ @ : + -')
export const parseName = checked(
  displayName,
  'must be up to 128 characters, at least one of them visible and no control characters',
)
export const parseBizId = checked(
  bizId,
  'must be 1 to 64 letters, digits or any of . _ : -, begin with a letter or digit, and be neither "wallet" nor like an id of the service',
)

/** The path of a file. */
export function parseFile(text: string): string {
  if (text === '') throw new Error('must be the path of a file')
  return text
}

/** An id of this kind. Only its form is looked at: whether there is such a thing, core knows. */
export function parseId(kind: IdKind): (text: string) => string {
  return text => {
    if (!uuidFromId(kind, text))
      throw new Error(`must be a whole id (${idPrefixes[kind]}_ and 26 letters and digits), not "${text}"`)
    return text
  }
}

export function parseScopes(text: string): Scope[] {
  const names = splitList(text)
  if (names.length === 0) throw new Error(`needs at least one of ${listOf(scopes)}`)
  return names.map(oneOf('scope', scopes))
}

/** @param kind what the values are, in the singular */
export function oneOf<Value extends string>(kind: string, values: readonly Value[]): (text: string) => Value {
  return text => {
    const value = values.find(each => each === text)
    if (value !== undefined) return value
    const match = nearest(text, values)
    const hint = match ? `did you mean ${match}? There` : 'there'
    throw new Error(`names "${text}", which is no ${kind}: ${hint} are ${listOf(values)}`)
  }
}

/** Addresses and CIDR blocks; core judges their form. Empty text is an empty list. */
export function splitList(text: string): string[] {
  return text.trim() === '' ? [] : text.split(',').map(entry => entry.trim())
}

const unitMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 }

/** "30s", "15m", "24h", "7d", in milliseconds. */
export function parseDuration(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhd])$/.exec(text) ?? []
  if (!count) throw new Error(`must be a duration such as 30s, 15m, 24h or 7d, not "${text}"`)
  return Number(count) * unitMs[unit as keyof typeof unitMs]
}

const longestGraceMs = rotateKeyInput.shape.graceMs.unwrap().maxValue!

export function parseGrace(text: string): number {
  const graceMs = parseDuration(text)
  if (graceMs > longestGraceMs) throw new Error(`must be ${longestGraceMs / unitMs.d}d at most`)
  return graceMs
}

/** The same for a key that is there already: it can also end now, or never. */
export function parseNewExpiry(text: string): Date | null {
  if (text === 'never') return null
  // By core's clock, which may not be ours.
  return text === 'now' ? new Date(0) : parseExpiry(text)
}

/** A moment that has passed: an ISO 8601 date, a time with its zone, or how long ago it was. */
export function parsePast(text: string, now = Date.now()): Date {
  if (/^\d+[smhd]$/.test(text)) return new Date(now - parseDuration(text))
  return parseMoment(text)
}

/** A whole number from 1 to 10,000. */
export function parseCount(text: string): number {
  if (!/^[1-9]\d{0,4}$/.test(text) || Number(text) > 10_000)
    throw new Error(`must be a whole number from 1 to 10000, not "${text}"`)
  return Number(text)
}

/** A moment: an ISO 8601 date (midnight UTC), date and time with a zone, or a duration from now. */
export function parseExpiry(text: string, now = Date.now()): Date {
  if (/^\d+[smhd]$/.test(text)) return new Date(now + parseDuration(text))
  return parseMoment(text)
}

function parseMoment(text: string): Date {
  const [, day] = /^(\d{4}-\d\d-\d\d)(?:T\d\d:\d\d(?::\d\d(?:\.\d{1,3})?)?(?:Z|[+-]\d\d:\d\d))?$/.exec(text) ?? []
  const date = new Date(text)
  if (!day || Number.isNaN(date.getTime()) || !isRealDay(day))
    throw new Error(
      `must be a date, a time with its zone or a duration (2027-01-31, 2027-01-31T12:00:00Z, 90d), not "${text}"`,
    )
  return date
}

/** Date itself rolls the 30th of February over into March. */
function isRealDay(day: string): boolean {
  return new Date(day).toISOString().startsWith(day)
}

function checked<Value>(schema: Schema<Value>, demand: string): (text: string) => Value {
  return text => {
    const result = schema.safeParse(text)
    if (!result.success) throw new Error(`${demand}, not "${text}"`)
    return result.data
  }
}
