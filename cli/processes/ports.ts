import { once } from 'node:events'
import { readFile } from 'node:fs/promises'
import { connect, createServer } from 'node:net'

/** Below the ports that the system gives to programs that ask for any port, and to connections: from 32768 on Linux. */
const [firstPort, endPort] = [20_000, 32_768]
/** Each worker of Vitest has a part of them, so that no other one takes a port while its program is restarted. */
const parts = 4
const partSize = (endPort - firstPort) / parts
const part = Number(process.env.VITEST_POOL_ID ?? 0) % parts
let picks = Math.floor(Math.random() * partSize)

/** A port that is free on 127.0.0.1 at the moment. */
export async function pickFreePort(): Promise<number> {
  for (let tries = 0; tries < partSize; tries++) {
    const port = firstPort + part * partSize + (picks++ % partSize)
    if ((await listenErrorOf('127.0.0.1', port)) === undefined) return port
  }
  throw new Error(`All ports from ${firstPort} to ${endPort - 1} are in use: stop programs that listen on them.`)
}

/** The lowest port that a process without privileges may listen on; 0 if the system does not say. */
export async function lowestUnprivilegedPort(): Promise<number> {
  return Number(await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(() => '0'))
}

/** Whether a program listens on this port of 127.0.0.1. It connects: a program that starts could not listen on the port of a listener. */
export async function isListenedOn(port: number): Promise<boolean> {
  const socket = connect(port, '127.0.0.1')
  try {
    await once(socket, 'connect')
    return true
  } catch {
    return false
  } finally {
    socket.destroy()
  }
}

/** Why a program cannot listen on this port: 'EADDRINUSE', 'EACCES', … Undefined if it can. */
export async function listenErrorOf(host: string, port: number): Promise<string | undefined> {
  const probe = createServer()
  return new Promise(resolve => {
    probe.once('error', error => resolve((error as NodeJS.ErrnoException).code ?? error.message))
    probe.listen(port, host, () => probe.close(() => resolve(undefined)))
  })
}
