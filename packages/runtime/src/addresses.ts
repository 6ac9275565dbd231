import { isAddress, isAddressOrBlock } from '@workspace-wallet/contract'
import ipaddr from 'ipaddr.js'

type Address = ipaddr.IPv4 | ipaddr.IPv6
export type AddressBlock = [Address, number]

/**
 * Parses comma-separated addresses and CIDR blocks.
 *
 * @throws Error naming the first invalid entry
 */
export function parseAddressList(text: string): AddressBlock[] {
  return text.split(',').map(entry => parseBlock(entry.trim()))
}

/** Parses one address or CIDR block. An IPv4-mapped IPv6 address becomes the IPv4 address. */
export function parseBlock(entry: string): AddressBlock {
  if (!isAddressOrBlock(entry)) throw new Error(`has "${entry}", which is neither an IP address nor a CIDR block`)
  const block = entry.includes('/') ? entry : `${entry}/${entry.includes(':') ? 128 : 32}`
  const [address, length] = ipaddr.parseCIDR(unambiguous(block))
  if (address instanceof ipaddr.IPv6 && address.isIPv4MappedAddress() && length >= 96)
    return [address.toIPv4Address(), length - 96]
  return [address, length]
}

/** Parses an address; null if it is invalid. An IPv4-mapped IPv6 address becomes the IPv4 address. */
export function parseAddress(text: string): Address | null {
  return isAddress(text) ? ipaddr.process(unambiguous(text)) : null
}

/** Writes `::192.0.2.1` as `::0:192.0.2.1`: the parser would take it for `::ffff:192.0.2.1`, which is another address. */
function unambiguous(text: string): string {
  return text.replace(/^::(?=\d+\.)/, '::0:')
}

/** Whether an address is in one of the blocks. */
export function isListed(address: Address, blocks: readonly AddressBlock[]): boolean {
  return blocks.some(([base, length]) => address.kind() === base.kind() && address.match(base, length))
}

/** The network that counts as one client: an IPv4 address, or an IPv6 /64, which is what one subscriber gets. */
export function networkOf(address: string): string {
  const parsed = parseAddress(address)
  if (!parsed) return address
  if (!('parts' in parsed)) return parsed.toString()
  return `${parsed.parts
    .slice(0, 4)
    .map(part => part.toString(16))
    .join(':')}::/64`
}
