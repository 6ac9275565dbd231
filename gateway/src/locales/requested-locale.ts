import type { IncomingHttpHeaders } from 'node:http'
import type { Locale } from './locale.ts'
import { findLocale, locales, matchLocale } from './localize.ts'

/** How many languages of Accept-Language are considered. It bounds the work for one request. */
const maxRanges = 20
const rangePattern = /^(\*|[a-z]{1,8}(?:[-_][a-z0-9]{1,8})*)(?:[ \t]*;[ \t]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?))?$/i

/**
 * The language in which a request asks for sentences: that of X-LOCALE, else the best match for Accept-Language (section
 * 12.5.4 of RFC 9110). The default language if none matches. Undefined if the request has neither header, if they are empty,
 * or if Accept-Language excludes the default language and names no other one.
 */
export function requestedLocale(headers: IncomingHttpHeaders): Locale | undefined {
  const tag = headers['x-locale']
  if (tag) return findLocale(String(tag))
  const accepted = headers['accept-language']?.trim()
  return accepted ? negotiate(accepted) : undefined
}

/** One language of Accept-Language, in lower case, or `*`. */
type Range = { tag: string; quality: number }

function negotiate(accepted: string): Locale | undefined {
  const ranges = accepted.split(',', maxRanges).flatMap(parseRange)
  const excluded = ranges.filter(({ quality }) => quality === 0).map(({ tag }) => tag)
  const wanted = ranges.filter(({ quality }) => quality > 0).sort((a, b) => b.quality - a.quality)
  for (const { tag } of wanted) {
    const found = tag === '*' ? locales.find(locale => !isExcluded(locale, tag, excluded)) : matchLocale(tag)
    if (found && !isExcluded(found, tag, excluded)) return found
  }
  return isExcluded(locales[0], '*', excluded) ? undefined : locales[0]
}

/** Empty for a malformed range. */
function parseRange(text: string): Range[] {
  const match = rangePattern.exec(text.trim())
  return match ? [{ tag: match[1]!.toLowerCase().replaceAll('_', '-'), quality: Number(match[2] ?? 1) }] : []
}

/**
 * Whether the client has excluded a locale (`q=0`). An exclusion counts only if it is at least as specific as the range that
 * found the locale: `en-US, en;q=0` accepts en-US.
 */
function isExcluded(locale: Locale, foundBy: string, excluded: string[]): boolean {
  const tag = locale.tag.toLowerCase()
  return excluded.some(range =>
    range === '*' ? foundBy === '*' : range.length >= foundBy.length && `${tag}-`.startsWith(`${range}-`),
  )
}
