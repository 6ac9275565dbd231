/** The shop sells in one currency. Its amounts are whole cents in a bigint, and decimal strings outside. Never floats. */
export const currency = 'USD'

/** @throws RangeError if the text is not an amount such as 12.50 */
export function toCents(text: unknown): bigint {
  const match = typeof text === 'string' && /^(-?)(\d{1,15})(?:\.(\d{1,2}))?$/.exec(text)
  if (!match) throw new RangeError(`${JSON.stringify(text)} is not an amount such as "12.50".`)
  const cents = BigInt(match[2]! + (match[3] ?? '').padEnd(2, '0'))
  return match[1] ? -cents : cents
}

export function toDecimal(cents: bigint): string {
  const digits = String(cents < 0n ? -cents : cents).padStart(3, '0')
  return `${cents < 0n ? '-' : ''}${digits.slice(0, -2)}.${digits.slice(-2)}`
}
