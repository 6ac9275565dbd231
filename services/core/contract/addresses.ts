import { isIPv4, isIPv6 } from 'node:net'

/** Whether a text is an IP address in its usual form ("10.0.0" and "010.0.0.1" are not), or a CIDR block of one. */
export function isAddressOrBlock(entry: string): boolean {
  const [address = '', length, ...rest] = entry.split('/')
  const bits = isAddress(address) ? (isIPv4(address) ? 32 : 128) : 0
  if (bits === 0 || rest.length > 0) return false
  return length === undefined || (/^(0|[1-9]\d{0,2})$/.test(length) && Number(length) <= bits)
}

/** Whether a text is an IP address in its usual form. */
export function isAddress(text: string): boolean {
  return isIPv4(text) || (isIPv6(text) && !text.includes('%'))
}
