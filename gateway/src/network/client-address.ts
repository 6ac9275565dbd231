import { type AddressBlock, isListed, parseAddress } from '@workspace-wallet/runtime'

/** How many addresses of X-Forwarded-For are read. It bounds the work for one request, and is more than any chain of proxies has. */
const maxHops = 32

/**
 * The address of the client, in canonical form. That is the address of the socket, unless it is a trusted proxy. Then
 * X-Forwarded-For is read from its end, where the nearest proxy wrote, to the first address that is not a trusted proxy.
 * Clients can write anything before that.
 */
export function clientAddress(
  socketAddress: string,
  forwardedFor: string | undefined,
  trustedProxies: readonly AddressBlock[],
): string {
  let client = parseAddress(socketAddress)
  if (!client) return socketAddress
  const hops = forwardedFor === undefined || trustedProxies.length === 0 ? [] : forwardedFor.split(',').slice(-maxHops)
  while (hops.length > 0 && isListed(client, trustedProxies)) {
    const next = parseAddress(hops.pop()!.trim())
    if (!next) break
    client = next
  }
  return client.toString()
}
