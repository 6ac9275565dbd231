/** A Redis server for tests, benchmark and chaos test: on loopback, and stopped with the process that started it. */
import { chmod, chown, mkdtemp, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import type { Guarded } from './guarded.ts'
import { pickFreePort } from './ports.ts'
import { signalProcess } from './processes.ts'
import { findProgram } from './programs.ts'
import { startServer } from './server.ts'
import { chooseIdentity, type Identity, identityBeside, isRoot, runAs } from './unprivileged.ts'

export interface Redis {
  program: string
  pid(): number
  url: string
  port: number
  /** Stops it at once, as a crash does: connections are reset, data in memory is lost. */
  kill(): Promise<void>
  /** Suspends it: it answers nothing, and its connections stay open. */
  freeze(): void
  thaw(): void
  /** Starts it again on the same port after `kill`, with the data that its settings persist (default: none). */
  restart(): Promise<void>
  stop(): Promise<void>
}

/**
 * @param settings settings of redis.conf; by default nothing is persisted
 * @param sentinel configuration of a Sentinel, which is started instead
 */
export async function startRedis(settings: Record<string, string> = {}, sentinel?: string): Promise<Redis> {
  const program = await findRedis()
  const port = await pickFreePort()
  let server = await runRedis(program, port, settings, sentinel)
  return {
    program,
    pid: () => server.pid,
    port,
    url: `redis://127.0.0.1:${port}`,
    async kill() {
      await server.stop()
    },
    freeze: () => signalProcess(server.pid, 'SIGSTOP'),
    thaw: () => signalProcess(server.pid, 'SIGCONT'),
    async stop() {
      await server.stop()
    },
    async restart() {
      await server.stop()
      server = await runRedis(program, port, settings, sentinel)
    },
  }
}

export function findRedis(): Promise<string> {
  return findProgram(['redis-server', 'valkey-server'], 'redis-server')
}

/** Resolves when the server answers. */
export async function runRedis(
  program: string,
  port: number,
  settings: Record<string, string>,
  sentinel?: string,
): Promise<Guarded> {
  // A replica writes the data of its primary to a file, so each server needs its own directory.
  const ownDir = settings.dir ? undefined : await mkdtemp(join(tmpdir(), 'wallet-redis-'))
  const dir = settings.dir ?? ownDir!
  const listening = { port: String(port), bind: '127.0.0.1', dir }
  const defaults = sentinel ? listening : { ...listening, save: '', appendonly: 'no' }
  const args = Object.entries({ ...defaults, ...settings }).flatMap(([name, value]) => [`--${name}`, value])
  if (sentinel) {
    // A Sentinel keeps what it learns in its configuration.
    const path = join(dir, 'sentinel.conf')
    await writeFile(path, sentinel)
    if (isRoot()) await chmod(path, 0o666)
    args.unshift(path, '--sentinel')
  }
  const identity = await identityFor(program, dir, settings.include)
  if (identity) await chown(dir, identity.uid, identity.gid)
  // No stop steps: there is nothing to save, and SIGKILL also ends a suspended server.
  const removeWhenStopped = ownDir ? [ownDir] : []
  const command = { ...runAs(identity, program, args), env: {}, stopSteps: [], removeWhenStopped }
  return startServer(command, join(dir, 'redis.log'), () => answersPing(port))
}

/** The user to run as: one who may read the included configuration, if there is one. */
async function identityFor(program: string, dir: string, include?: string): Promise<Identity | undefined> {
  if (!isRoot()) return undefined
  const needs = { program, directories: [dirname(dir)], files: include ? [include] : [] }
  return include ? identityBeside(include, needs) : chooseIdentity(undefined, needs)
}

function answersPing(port: number): Promise<boolean> {
  return new Promise(resolve => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'))
    const done = (answer: boolean) => {
      socket.destroy()
      resolve(answer)
    }
    socket.once('data', data => done(/^(\+PONG|-NOAUTH)/.test(data.toString())))
    socket.once('error', () => done(false))
    socket.setTimeout(1_000, () => done(false))
  })
}
