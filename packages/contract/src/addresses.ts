import { z } from 'zod'

const address = z.union([z.ipv4(), z.ipv6()])
const block = z.union([z.cidrv4(), z.cidrv6()])

/** Whether a text is an IPv4 or IPv6 address in its usual form. "10.0.0" and "010.0.0.1" are not. */
export function isAddress(text: string): boolean {
  return address.safeParse(text).success
}

/** Whether a text is an IP address as in `isAddress`, or a CIDR block. */
export function isAddressOrBlock(entry: string): boolean {
  return isAddress(entry) || block.safeParse(entry).success
}
