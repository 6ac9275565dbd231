import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'

/** Makes a server of a test listen on loopback. Returns its port. */
export async function listen(server: Server, port = 0): Promise<number> {
  server.listen(port, '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
