import { type FieldReason, isAddress, webhookUrlFault } from '@workspace-wallet/contract'
import ipaddr from 'ipaddr.js'
import { type AddressBlock, isListed, parseAddress, parseAddressList, parseBlock } from './addresses.ts'
import { parsed } from './environment.ts'

/** WEBHOOK_ALLOWED_NETWORKS of core and couriers. */
export const allowedNetworks = parsed(parseAddressList)
  .default([])
  .describe(
    'Comma-separated addresses and CIDR blocks where webhooks are allowed, besides public addresses, also by http and at every port but 0. Set the same value for core and couriers',
  )

/** IPv6 addresses outside this block are not assigned to the public Internet: loopback, private, mapped, NAT64, multicast. */
const globalIpv6 = parseBlock('2000::/3')

/**
 * The IANA IPv4 and IPv6 special-purpose address registries (the latter within 2000::/3), multicast, reserved addresses, and
 * the metadata service of Azure. Those of other clouds are in 169.254.0.0/16, 100.64.0.0/10, 192.0.0.0/24 and fc00::/7.
 */
const specialBlocks = [
  '0.0.0.0/8',
  '10.0.0.0/8',
  '100.64.0.0/10',
  '127.0.0.0/8',
  '168.63.129.16/32',
  '169.254.0.0/16',
  '172.16.0.0/12',
  '192.0.0.0/24',
  '192.0.2.0/24',
  '192.31.196.0/24',
  '192.52.193.0/24',
  '192.88.99.0/24',
  '192.168.0.0/16',
  '192.175.48.0/24',
  '198.18.0.0/15',
  '198.51.100.0/24',
  '203.0.113.0/24',
  '224.0.0.0/4',
  '240.0.0.0/4',
  // Teredo, ORCHID, benchmarking and further protocol assignments.
  '2001::/23',
  '2001:db8::/32',
  '2002::/16',
  '2620:4f:8000::/48',
  '3fff::/20',
].map(parseBlock)

/**
 * Whether an address is global unicast: neither special-purpose nor an IPv6 address with an IPv4 address in it. False for any
 * other text.
 */
export function isPublicAddress(text: string): boolean {
  if (!isAddress(text)) return false
  const address = ipaddr.parse(text)
  return (address.kind() === 'ipv4' || isListed(address, [globalIpv6])) && !isListed(address, specialBlocks)
}

/**
 * Why the URL of a webhook is rejected when a client sets it; null if it is accepted. Host names are not resolved here: their
 * addresses are checked at each attempt. If there are allowed networks, a name may have an address in one of them, so http and
 * every port but 0 are accepted.
 *
 * @param allowed WEBHOOK_ALLOWED_NETWORKS
 */
export function webhookTargetFault(text: string, allowed: readonly AddressBlock[]): FieldReason | null {
  const fault = webhookUrlFault(text)
  if (fault) return fault
  const address = literalAddress(new URL(text))
  if (address !== null) return webhookAddressFault(text, [address], allowed)
  return allowed.length > 0 ? null : publicUrlFault(new URL(text))
}

/**
 * Why no event may be sent to a URL whose host has these addresses; null if it may. In allowed networks, http and every port
 * but 0 are allowed. All other addresses must be public, with https at port 443, 1024 or higher.
 *
 * @param addresses all addresses of its host; without one, nothing may be sent
 * @param allowed WEBHOOK_ALLOWED_NETWORKS
 */
export function webhookAddressFault(
  text: string,
  addresses: readonly string[],
  allowed: readonly AddressBlock[],
): FieldReason | null {
  const fault = webhookUrlFault(text)
  if (fault) return fault
  if (addresses.length === 0) return 'ADDRESS_NOT_ALLOWED'
  const others = addresses.filter(each => {
    const address = parseAddress(each)
    return !address || !isListed(address, allowed)
  })
  if (others.length === 0) return null
  return others.every(isPublicAddress) ? publicUrlFault(new URL(text)) : 'ADDRESS_NOT_ALLOWED'
}

/** The address that is the host of a URL, without brackets; null if the host is a name. */
export function literalAddress({ hostname }: URL): string | null {
  const host = hostname.replace(/^\[(.*)\]$/, '$1')
  return parseAddress(host) ? host : null
}

function publicUrlFault({ protocol, port }: URL): FieldReason | null {
  if (protocol !== 'https:') return 'NOT_HTTPS'
  return port === '' || Number(port) >= 1024 ? null : 'PORT_NOT_ALLOWED'
}
