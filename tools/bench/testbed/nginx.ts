/** nginx with Lua, from Debian packages, with the same checks as the gateway. */
import { access, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { isListenedOn, pickFreePort } from '../../../cli/processes/ports.ts'
import { findProgram } from '../../../cli/processes/programs.ts'
import { startServer } from '../../../cli/processes/server.ts'
import type { Signer, Testbed } from './testbed.ts'

export type Nginx = { port: number; pid: number; stop(): Promise<void> }

const modules = '/usr/lib/nginx/modules'

/** @throws Error when nginx is not installed and cannot be installed */
export async function startNginx(testbed: Testbed, signer: Signer, upstreamPort: number): Promise<Nginx> {
  const program = await findNginx()
  const directory = join(testbed.directory, 'nginx')
  await mkdir(directory)
  const port = await pickFreePort()
  const values: Record<string, string | number> = {
    modules,
    directory,
    port,
    upstreamPort,
    check: fileURLToPath(new URL('./nginx/check.lua', import.meta.url)),
    // Otherwise the worker of an nginx that runs as root has a user who may not read check.lua.
    user: process.getuid?.() === 0 ? 'user root;' : '',
    apiKey: signer.apiKey,
    apiSecret: signer.apiSecret,
    redisPort: testbed.redis.port,
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
  return {
    port,
    pid: nginx.pid,
    async stop() {
      await nginx.stop()
    },
  }
}

async function findNginx(): Promise<string> {
  const program = await findProgram(['nginx'], 'libnginx-mod-http-lua')
  try {
    await access(join(modules, 'ngx_http_lua_module.so'))
  } catch {
    throw new Error('nginx has no Lua module: install libnginx-mod-http-lua.')
  }
  return program
}
