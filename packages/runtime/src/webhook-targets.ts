import { type FieldReason, isAddress, webhookUrlFault } from '@workspace-wallet/contract'
import ipaddr from 'ipaddr.js'
import { type AddressBlock, isListed, parseAddress, parseAddressList, parseBlock } from './addresses.ts'
import { parsed } from './environment.ts'

/** WEBHOOK_ALLOWED_NETWORKS of core and couriers. */
export const allowedNetworks = parsed(parseAddressList)
  .default([])
  .describe(
    'Comma-separated addresses and CIDR blocks that webhooks may lead to, besides public addresses: also by http, and at every port. Set the same for core and couriers',
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
 * Whether an address is global unicast: neither special-purpose, nor a form of IPv6 that has an IPv4 address in it.
 *
 * @param text any string; what is not an address is not public
 */
export function isPublicAddress(text: string): boolean {
  if (!isAddress(text)) return false
  const address = ipaddr.parse(text)
  return (address.kind() === 'ipv4' || isListed(address, [globalIpv6])) && !isListed(address, specialBlocks)
}

/**
 * Why the URL of a webhook is refused when a client sets it; null if it is not. Names are not resolved here: where they lead
 * is checked at each attempt. If there are allowed networks, a name may lead there, so every port and http are accepted.
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
 * Why no attempt may be made at a URL that leads to these addresses; null if it may. Allowed networks admit http and every
 * port. All other addresses must be public, and be reached by https at port 443 or at one that needs no privileges.
 *
 * @param addresses all addresses of its host, at least one
 * @param allowed WEBHOOK_ALLOWED_NETWORKS
 */
export function webhookAddressFault(
  text: string,
  addresses: readonly string[],
  allowed: readonly AddressBlock[],
): FieldReason | null {
  const fault = webhookUrlFault(text)
  if (fault) return fault
  const others = addresses.filter(text => {
    const address = parseAddress(text)
    return !address || !isListed(address, allowed)
  })
  if (others.length === 0 && addresses.length > 0) return null
  if (addresses.length === 0 || !others.every(isPublicAddress)) return 'ADDRESS_NOT_ALLOWED'
  return publicUrlFault(new URL(text))
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
