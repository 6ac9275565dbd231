import { readFile } from 'node:fs/promises'
import { createServer } from 'node:net'

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

/** Below it only root, or whom root lets, may listen. 0 where the system does not say. */
export async function lowestUnprivilegedPort(): Promise<number> {
  return Number(await readFile('/proc/sys/net/ipv4/ip_unprivileged_port_start', 'utf8').catch(() => '0'))
}

/** Whether somebody listens on a port of this machine. */
export async function isListenedOn(port: number): Promise<boolean> {
  return (await portTrouble('127.0.0.1', port)) === 'EADDRINUSE'
}

/** Undefined when it can be listened on, else why not: 'EADDRINUSE', 'EACCES', … */
export async function portTrouble(host: string, port: number): Promise<string | undefined> {
  const probe = createServer()
  return new Promise(resolve => {
    probe.once('error', error => resolve((error as NodeJS.ErrnoException).code ?? error.message))
    probe.listen(port, host, () => probe.close(() => resolve(undefined)))
  })
}
