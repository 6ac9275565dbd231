import { setTimeout as sleep } from 'node:timers/promises'
import { listenErrorOf, lowestUnprivilegedPort } from '../processes/ports.ts'
import { isRoot } from '../processes/unprivileged.ts'
import type { Settings } from './settings.ts'

/**
 * Checks that gateway and core can listen on their ports.
 *
 * @param wasKilled whether programs of a killed start may still be stopping: waits up to 15 s for them to free a port
 * @throws Error that says which variable to change
 */
export async function requireFreePorts(settings: Settings, wasKilled: boolean): Promise<void> {
  const deadline = Date.now() + (wasKilled ? 15_000 : 0)
  const { gatewayHost, gatewayPort, coreHost, corePort, internalHost, internalPort } = settings
  await requireFreePort('GATEWAY_PORT', gatewayHost, gatewayPort, deadline)
  await requireFreePort('CORE_PORT', coreHost, corePort, deadline)
  await requireFreePort('INTERNAL_PORT', internalHost, internalPort, deadline)
}

async function requireFreePort(variable: string, host: string, port: number, deadline: number): Promise<void> {
  // Programs do not run as root, so they cannot use the ports of root.
  const lowest = isRoot() ? await lowestUnprivilegedPort() : 0
  if (port < lowest)
    throw new Error(
      `Only root may listen on port ${port}, and no program runs as root: set ${variable} to ${lowest} or above, and let a proxy listen on ${port}.`,
    )
  for (;;) {
    const code = await listenErrorOf(host, port)
    if (code === undefined) return
    if (code !== 'EADDRINUSE')
      throw new Error(
        `Cannot listen on ${host}:${port} (${code}): set ${variable} to another port, or correct ${variable.replace('PORT', 'HOST')}.`,
      )
    if (Date.now() > deadline)
      throw new Error(`Port ${port} is in use: stop the program that uses it, or set ${variable} to a free port.`)
    await sleep(100)
  }
}
