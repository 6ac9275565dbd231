import { uuidv7 } from 'uuidv7'

/**
 * Public IDs in the TypeID format: a prefix for the kind, then a UUIDv7 as 26 characters of Crockford base32. They sort by
 * time of creation. PostgreSQL stores the UUID, which halves the size of indexes (docs/decisions/0005).
 */
export const idPrefixes = {
  workspace: 'wsp',
  apiKey: 'ak',
  wallet: 'wal',
  transfer: 'trf',
  flow: 'flw',
  hold: 'hld',
  event: 'evt',
  webhook: 'whk',
} as const
export type IdKind = keyof typeof idPrefixes

/**
 * An ID in core has one of three types. `string` is what a caller sent, which may be malformed: the first function that uses
 * it parses it with `uuidFromId` or `isId`. `Id` is a public ID, and `Uuid` is the same ID as PostgreSQL stores it.
 */
export type Id<Kind extends IdKind = IdKind> = string & { readonly [idKind]: Kind }
export type Uuid<Kind extends IdKind = IdKind> = string & { readonly [uuidKind]: Kind }
// Only for the type checker: at run time, both are strings.
declare const idKind: unique symbol
declare const uuidKind: unique symbol

/** Of a UUID as PostgreSQL writes it. */
export const uuidPattern = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/

const alphabet = '0123456789abcdefghjkmnpqrstvwxyz'
const suffixLength = 26
const suffixForm = '[0-7][0-9a-hjkmnp-tv-z]{25}'
const suffixPattern = new RegExp(`^${suffixForm}$`)
const uuidv7Pattern = /^.{14}7.{4}[89ab]/
const hexOf = Array.from({ length: 256 }, (_, byte) => byte.toString(16).padStart(2, '0'))
const noHex = 255
const hexValueOf = new Uint8Array(128).fill(noHex)
for (let value = 0; value < 16; value++) hexValueOf[value.toString(16).charCodeAt(0)] = value
const digitOf = new Uint8Array(128)
for (let digit = 0; digit < alphabet.length; digit++) digitOf[alphabet.charCodeAt(digit)] = digit

/**
 * The last bit of the UUIDs of a kind, where it is fixed. The event of a transfer has the UUID of the transfer, and all other events
 * have their own. One flow of a transfer has its UUID, the other one has this UUID with the last bit flipped. With these bits, no two
 * events and no two flows share a UUID, also if the caller of core generates those of transfers.
 */
const lastBitOf: Partial<Record<IdKind, 0 | 1>> = { transfer: 0, event: 1 }

/** A new ID of this kind, such as `wal_01j…`. */
export function mintId<Kind extends IdKind>(kind: Kind): Id<Kind> {
  const uuid = uuidv7()
  const lastBit = lastBitOf[kind]
  if (lastBit === undefined) return idFromUuid(kind, uuid as Uuid<Kind>)
  const lastDigit = (hexValueOf[uuid.charCodeAt(35)]! & 0b1110) | lastBit
  return idFromUuid(kind, (uuid.slice(0, -1) + lastDigit.toString(16)) as Uuid<Kind>)
}

/** Whether `mintId` can return this text. The nil UUID, which no record has, is in no such ID. */
export function hasMintedForm<Kind extends IdKind>(kind: Kind, text: string): text is Id<Kind> {
  const uuid = uuidFromId(kind, text)
  if (!uuid || !uuidv7Pattern.test(uuid)) return false
  const lastBit = lastBitOf[kind]
  return lastBit === undefined || (hexValueOf[uuid.charCodeAt(35)]! & 1) === lastBit
}

/** The public ID of a UUID. */
export function idFromUuid<Kind extends IdKind>(kind: Kind, uuid: Uuid<Kind>): Id<Kind> {
  return `${idPrefixes[kind]}_${suffixOfUuid(uuid)}` as Id<Kind>
}

/** The UUID of a public ID; null if a text is not an ID of this kind. */
export function uuidFromId<Kind extends IdKind>(kind: Kind, id: Id<Kind>): Uuid<Kind>
export function uuidFromId<Kind extends IdKind>(kind: Kind, id: string): Uuid<Kind> | null
export function uuidFromId<Kind extends IdKind>(kind: Kind, id: string): Uuid<Kind> | null {
  const prefix = idPrefixes[kind]
  if (id.length !== prefix.length + 1 + suffixLength || !id.startsWith(prefix) || id[prefix.length] !== '_') return null
  const suffix = id.slice(prefix.length + 1)
  return suffixPattern.test(suffix) ? (uuidOfSuffix(suffix) as Uuid<Kind>) : null
}

export function isId<Kind extends IdKind>(kind: Kind, text: string): text is Id<Kind> {
  return uuidFromId(kind, text) !== null
}

/** A regular expression for the IDs of this kind, for the OpenAPI document. */
export function idPattern(kind: IdKind): string {
  return `^${idPrefixes[kind]}_${suffixForm}$`
}

/** Whether a text begins like an ID of one of these kinds, in any letter case. It need not be a valid ID. */
export function looksLikeId(kinds: readonly IdKind[], text: string): boolean {
  return /^[a-z]+_[0-9a-z]*$/i.test(text) && kinds.some(kind => text.toLowerCase().startsWith(`${idPrefixes[kind]}_`))
}

/**
 * The inclusive range of UUIDs whose public IDs begin with `text`; null if no ID of this kind can. For wallets, `''` and
 * `'wa'` select all.
 */
export function uuidRangeOfPrefix(kind: IdKind, text: string): { from: string; to: string } | null {
  const head = `${idPrefixes[kind]}_`
  const suffix = text.slice(head.length)
  if (!head.startsWith(text.slice(0, head.length)) || suffix.length > suffixLength) return null
  const from = suffix.padEnd(suffixLength, '0')
  const to = (suffix || '7').padEnd(suffixLength, 'z')
  if (!suffixPattern.test(from)) return null
  return { from: uuidOfSuffix(from), to: uuidOfSuffix(to) }
}

/** Encodes 128 bits as 26 digits of five bits, with two leading zero bits. */
function suffixOfUuid(uuid: string): string {
  let suffix = ''
  let pending = 0
  let bits = 2
  for (let at = 0; at < uuid.length; at++) {
    const value = hexValueOf[uuid.charCodeAt(at)]!
    if (value === noHex) continue // a hyphen
    pending = ((pending << 4) | value) & 0x1ff
    bits += 4
    if (bits >= 5) {
      bits -= 5
      suffix += alphabet[(pending >> bits) & 31]
    }
  }
  return suffix
}

function uuidOfSuffix(suffix: string): string {
  let hex = ''
  let pending = 0
  let bits = -2
  for (let at = 0; at < suffix.length; at++) {
    pending = (pending << 5) | digitOf[suffix.charCodeAt(at)]!
    bits += 5
    if (bits >= 8) {
      bits -= 8
      hex += hexOf[(pending >> bits) & 255]
      pending &= (1 << bits) - 1
    }
  }
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`
}
