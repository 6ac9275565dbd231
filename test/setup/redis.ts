/** A Redis for tests: a server of our own, on a free port, gone with the process that started it. */
import { execFile } from 'node:child_process'
import { access, constants, rm, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'
import { type Guarded, runGuarded } from '../../scripts/embedded/guarded.ts'
import { pickFreePort } from '../../scripts/embedded/ports.ts'
import { signalProcess } from '../../scripts/embedded/processes.ts'
import { until } from './until.ts'

export interface Redis {
  url: string
  port: number
  /** Ends it at once, as a crash would: connections are reset, everything is forgotten. */
  kill(): Promise<void>
  /** Stops it from answering while its connections stay open. */
  freeze(): void
  thaw(): void
  /** Starts it again on the same port, after `kill`: with what its settings let it keep, and that is nothing by default. */
  restart(): Promise<void>
  stop(): Promise<void>
}

/** @param settings of redis.conf; without any it keeps everything in memory only */
export async function startRedis(settings: Record<string, string> = {}): Promise<Redis> {
  const program = await findRedis()
  const port = await pickFreePort()
  let server = await run(program, port, settings)
  return {
    port,
    url: `redis://127.0.0.1:${port}`,
    kill: () => server.stop(),
    freeze: () => signalProcess(server.pid, 'SIGSTOP'),
    thaw: () => signalProcess(server.pid, 'SIGCONT'),
    stop: () => server.stop(),
    async restart() {
      await server.stop()
      server = await run(program, port, settings)
    },
  }
}

async function run(program: string, port: number, settings: Record<string, string>): Promise<Guarded> {
  const defaults = { port: String(port), bind: '127.0.0.1', save: '', appendonly: 'no', dir: tmpdir() }
  const args = Object.entries({ ...defaults, ...settings }).flatMap(([name, value]) => [`--${name}`, value])
  // No stop steps: there is nothing to save, and SIGKILL also ends a server that is frozen.
  const server = await runGuarded({ command: program, args, cwd: '/', env: {}, stopSteps: [] }, 'ignore')
  await until(`Redis answers on port ${port}`, async () => {
    if (server.hasExited()) throw new Error(`${program} did not start (${await server.exited}).`)
    return answersPing(port)
  })
  return server
}

function answersPing(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    const done = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('data', data => done(data.toString().startsWith('+PONG')))
    socket.once('error', () => done(false))
    socket.setTimeout(1_000, () => done(false))
  })
}

async function findRedis(): Promise<string> {
  const names = ['redis-server', 'valkey-server']
  const found = await findOnPath(names)
  if (found) return found
  await installRedis()
  const installed = await findOnPath(names)
  if (installed) return installed
  throw new Error('The tests need Redis: install redis-server or valkey-server, or set REDIS_URL to a running one.')
}

async function findOnPath(names: string[]): Promise<string | undefined> {
  for (const directory of (process.env.PATH ?? '').split(delimiter))
    for (const name of names) {
      const path = join(directory, name)
      const isThere = await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
      if (isThere) return path
    }
  return undefined
}

/** Where we may: as root on a system with apt. Elsewhere the person has to. */
async function installRedis(): Promise<void> {
  if (process.getuid?.() !== 0 || !(await findOnPath(['apt-get']))) return
  console.log('Installing redis-server for the tests …')
  const allow = await keepServicesStopped()
  try {
    const options = ['-qq', '-o', 'DPkg::Lock::Timeout=120']
    await aptGet([...options, 'update'])
    await aptGet([...options, 'install', '-y', '--no-install-recommends', 'redis-server'])
  } catch (error) {
    throw new Error(`redis-server could not be installed: install it, or set REDIS_URL. ${(error as Error).message}`)
  } finally {
    await allow()
  }
}

async function aptGet(args: string[]): Promise<void> {
  await promisify(execFile)('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } })
}

/** The package would start a Redis of its own, on the usual port; this file is Debian's way to say no. */
async function keepServicesStopped(): Promise<() => Promise<void>> {
  const policy = '/usr/sbin/policy-rc.d'
  try {
    await writeFile(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return async () => {}
  }
  return () => rm(policy, { force: true })
}
