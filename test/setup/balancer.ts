/** The load balancer of docker-compose.yml: HAProxy with its own configuration, and the addresses of a test. */
import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Guarded } from '../../cli/processes/guarded.ts'
import { isListenedOn, pickFreePort } from '../../cli/processes/ports.ts'
import { findProgram } from '../../cli/processes/programs.ts'
import { startServer } from '../../cli/processes/server.ts'
import { root } from './images.ts'

export type Balancer = { url: string; pid: number; stop: Guarded['stop'] }

/** What haproxy.cfg reads; see docker-compose.yml. */
type Environment = { CONNECTIONS_PER_SOURCE: string; TLS_CERTIFICATE?: string }

/** @param hosts the address that replaces each `name:port` of haproxy.cfg */
export async function startBalancer(
  hosts: Record<string, string>,
  directory: string,
  environment: Environment,
): Promise<Balancer> {
  const program = await findProgram(['haproxy'], 'haproxy')
  const port = await pickFreePort()
  let text = await readFile(join(root, 'deploy/containers/haproxy.cfg'), 'utf8')
  for (const [name, host] of Object.entries({ 'bind :8080': `bind 127.0.0.1:${port}`, ...hosts }))
    text = text.replaceAll(name, host)
  const file = join(directory, `haproxy-${port}.cfg`)
  await writeFile(file, text)
  const command = { command: program, args: ['-db', '-f', file], env: environment, stopSteps: [] }
  const balancer = await startServer(command, join(directory, `haproxy-${port}.log`), () => isListenedOn(port))
  return {
    url: `${environment.TLS_CERTIFICATE ? 'https' : 'http'}://127.0.0.1:${port}`,
    pid: balancer.pid,
    stop: balancer.stop,
  }
}
