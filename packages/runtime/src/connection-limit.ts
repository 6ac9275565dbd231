import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { getHeapStatistics } from 'node:v8'
import { type AddressBlock, isListed, networkOf, parseAddress } from './addresses.ts'
import { Counts } from './counts.ts'

/** What the headers of a request can take that has not arrived completely. */
const connectionBytes = 128 * 1024

/** The default limit: as many connections as fit into the largest heap that this process may have. */
export const defaultConnectionLimit = Math.floor(getHeapStatistics().heap_size_limit / connectionBytes)

/**
 * Closes connections above a limit. One client address gets at most half of it, unless it is that of a trusted proxy, whose
 * connections are those of many clients.
 */
export function limitConnections(server: Server, limit: number, trustedProxies: readonly AddressBlock[] = []): void {
  const counts = new Counts()
  server.maxConnections = limit
  server.on('connection', (socket: Socket) => {
    const { remoteAddress } = socket
    // The client has reset it already. Its requests would be those of nobody.
    if (remoteAddress === undefined) return void socket.destroy()
    const address = parseAddress(remoteAddress)
    if (address && isListed(address, trustedProxies)) return
    const network = networkOf(remoteAddress)
    counts.add(network)
    socket.once('close', () => counts.remove(network))
    if (counts.of(network) > limit / 2) socket.destroy()
  })
}
