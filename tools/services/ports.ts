import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'

/** A port that is free on 127.0.0.1 at the moment. */
export async function pickFreePort(): Promise<number> {
  const probe = createServer()
  return new Promise((resolve, reject) => {
    probe.once('error', reject)
    probe.listen(0, '127.0.0.1', () => {
      const { port } = probe.address() as { port: number }
      probe.close(() => resolve(port))
    })
  })
}

/** The lowest port that a process without privileges may listen on; 0 if the system does not say. */
export async function lowestUnprivilegedPort(): Promise<number> {
  return Number(await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(() => '0'))
}

/** Whether a program listens on this port of 127.0.0.1. */
export async function isListenedOn(port: number): Promise<boolean> {
  return (await listenErrorOf('127.0.0.1', port)) === 'EADDRINUSE'
}

/** Why a program cannot listen on this port: 'EADDRINUSE', 'EACCES', … Undefined if it can. */
export async function listenErrorOf(host: string, port: number): Promise<string | undefined> {
  const probe = createServer()
  return new Promise(resolve => {
    probe.once('error', error => resolve((error as NodeJS.ErrnoException).code ?? error.message))
    probe.listen(port, host, () => probe.close(() => resolve(undefined)))
  })
}
