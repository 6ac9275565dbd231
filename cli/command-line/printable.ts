/**
 * A value whose texts have no control characters, with which whoever chose them could control the terminal, or show lines of their own.
 */
export function printable<Value>(value: Value): Value
export function printable(value: unknown): unknown {
  if (typeof value === 'string') return value.replaceAll(/[\p{Cc}\p{Cf}]/gu, '\uFFFD')
  if (Array.isArray(value)) return value.map(printable)
  if (value === null || typeof value !== 'object' || value instanceof Date) return value
  return Object.fromEntries(Object.entries(value).map(printable))
}
