import { once } from 'node:events'
import type { AddressInfo, Server } from 'node:net'
import { pickFreePort } from '../../cli/processes/ports.ts'

/** Makes a server of a test listen on loopback, by default on any free port. Returns its port. */
export async function listen(server: Server, port?: number): Promise<number> {
  server.listen(port ?? (await pickFreePort()), '127.0.0.1')
  await once(server, 'listening')
  return (server.address() as AddressInfo).port
}
