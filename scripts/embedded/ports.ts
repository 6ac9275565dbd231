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

/** Undefined when it can be listened on, else why not: 'EADDRINUSE', 'EACCES', … */
export async function portTrouble(host: string, port: number): Promise<string | undefined> {
  const probe = createServer()
  return new Promise(resolve => {
    probe.once('error', error => resolve((error as NodeJS.ErrnoException).code ?? error.message))
    probe.listen(port, host, () => probe.close(() => resolve(undefined)))
  })
}
