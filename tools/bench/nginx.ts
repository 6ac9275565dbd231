/** nginx with Lua, from Debian's packages, doing what the gateway does. */
import { access, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isListenedOn, pickFreePort } from '../services/ports.ts'
import { findProgram } from '../services/programs.ts'
import { startServer } from '../services/server.ts'
import type { Signer, Stage } from './stage.ts'

export type Nginx = { port: number; pid: number; stop(): Promise<void> }

const modules = '/usr/lib/nginx/modules'

/** @throws when it is not there and cannot be installed */
export async function startNginx(stage: Stage, signer: Signer, upstreamPort: number): Promise<Nginx> {
  const program = await findNginx()
  const directory = join(stage.directory, 'nginx')
  await mkdir(directory)
  const port = await pickFreePort()
  const values: Record<string, string | number> = {
    modules,
    directory,
    port,
    upstreamPort,
    check: fileURLToPath(new URL('./nginx/check.lua', import.meta.url)),
    // Without it root's nginx would give its worker to a user who may not read the check.
    user: process.getuid?.() === 0 ? 'user root;' : '',
    apiKey: signer.apiKey,
    apiSecret: signer.apiSecret,
    redisPort: stage.redis.port,
  }
  const text = await readFile(new URL('./nginx/nginx.conf', import.meta.url), 'utf8')
  const file = join(directory, 'nginx.conf')
  await writeFile(
    file,
    text.replaceAll(/@(\w+)@/g, (_, name) => String(values[name])),
    { mode: 0o600 },
  )

  const stopSteps = [{ signal: 'SIGTERM' as const, timeoutMs: 5_000 }]
  const command = { command: program, args: ['-c', file, '-e', 'stderr'], env: {}, stopSteps }
  const nginx = await startServer(command, join(directory, 'nginx.log'), () => isListenedOn(port))
  return { port, pid: nginx.pid, stop: nginx.stop }
}

async function findNginx(): Promise<string> {
  const program = await findProgram(['nginx'], 'libnginx-mod-http-lua')
  try {
    await access(join(modules, 'ngx_http_lua_module.so'))
  } catch {
    throw new Error('nginx has no Lua module here: install libnginx-mod-http-lua.')
  }
  return program
}
