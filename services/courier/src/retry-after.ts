/** Longer waits are reported as this one. Core waits at most an hour. */
const maxSeconds = 86_400

/**
 * The seconds of a `Retry-After` header (RFC 9110, section 10.2.3): a number of seconds, or an HTTP date. Null if it is
 * missing or malformed.
 */
export function retryAfterSeconds(header: string | undefined, nowMs: number): number | null {
  if (header === undefined) return null
  const text = header.trim()
  if (/^\d+$/.test(text)) return Math.min(Number(text), maxSeconds)
  // Other formats that Date.parse reads, such as "-1", are no HTTP dates.
  const timeMs = /^[A-Z][a-z]+, .* GMT$/.test(text) ? Date.parse(text) : Number.NaN
  return Number.isNaN(timeMs) ? null : Math.min(Math.max(Math.ceil((timeMs - nowMs) / 1000), 0), maxSeconds)
}
