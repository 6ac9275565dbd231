/** PgBouncer for tests and the benchmark, with the configuration of deploy/pgbouncer and other addresses and passwords. */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isListenedOn, pickFreePort } from './ports.ts'
import { signalProcess } from './processes.ts'
import { findProgram } from './programs.ts'
import { startServer } from './server.ts'
import { chooseIdentity, giveTo, isRoot, runAs } from './unprivileged.ts'

export interface PgBouncer {
  /** DATABASE_POOLER_URL. */
  url: string
  pid(): number
  /** Stops it at once, as a crash does: its connections are reset. */
  kill(): Promise<void>
  /** Starts it again on the same port after `kill`. */
  restart(): Promise<void>
  /** Suspends it: it answers nothing, and its connections stay open. */
  freeze(): void
  thaw(): void
  stop(): Promise<void>
}

export interface PgBouncerOptions {
  /** Default: PGBOUNCER, or else the one of the system. */
  program?: string
  /** Texts of pgbouncer.ini, and what stands there instead. */
  replace?: Record<string, string>
}

/** PgBouncer 1.21 has the number 21. */
export async function findPgBouncer(given = process.env.PGBOUNCER): Promise<{ program: string; version: number }> {
  const program = given || (await findProgram(['pgbouncer'], 'pgbouncer'))
  const { stdout } = await promisify(execFile)(program, ['--version'])
  return { program, version: Number(/^PgBouncer 1\.(\d+)/.exec(stdout)![1]) }
}

/** @param target the database, with the role of the sessions of PgBouncer */
export async function startPgBouncer(target: string, options: PgBouncerOptions = {}): Promise<PgBouncer> {
  const { program, version } = await findPgBouncer(options.program)
  const directory = await mkdtemp(join(tmpdir(), 'wallet-pgbouncer-'))
  const port = await pickFreePort()
  const password = 'a password of the cores'
  const { hostname, port: targetPort, pathname, username, password: targetPassword } = new URL(target)
  const database = pathname.slice(1)
  const users = join(directory, 'userlist.txt')
  const texts: Record<string, string> = {
    'host=postgres port=5432 dbname=wallet': `host=${hostname} port=${targetPort} dbname=${database}`,
    'user=wallet_pooler': `user=${decodeURIComponent(username)}`,
    POOLER_PASSWORD: decodeURIComponent(targetPassword),
    'listen_port = 6432': `listen_port = ${port}`,
    '/etc/pgbouncer/userlist.txt': users,
    // Older versions do not know this setting.
    ...(version < 21 && { 'max_prepared_statements =': '; max_prepared_statements =' }),
    ...options.replace,
  }
  let text = await readFile(new URL('../../deploy/pgbouncer/pgbouncer.ini', import.meta.url), 'utf8')
  for (const [name, value] of Object.entries(texts)) text = text.replaceAll(name, value)
  const file = join(directory, 'pgbouncer.ini')
  await writeFile(file, text.replaceAll(/^wallet_(\w+) =/gm, `${database}_$1 =`), { mode: 0o600 })
  await writeFile(users, `"core" "${password}"\n`, { mode: 0o600 })
  const identity = isRoot() ? await chooseIdentity(undefined, { program, directories: [tmpdir()] }) : undefined
  await giveTo(identity, directory)
  // No stop steps: there is nothing to save, and SIGKILL also ends a suspended one.
  const command = { ...runAs(identity, program, [file]), env: {}, stopSteps: [] }
  const run = () => startServer(command, join(directory, 'pgbouncer.log'), () => isListenedOn(port))
  let server = await run()
  return {
    url: `postgres://core:${encodeURIComponent(password)}@127.0.0.1:${port}/${database}`,
    pid: () => server.pid,
    async kill() {
      await server.stop()
    },
    async restart() {
      server = await run()
    },
    freeze: () => signalProcess(server.pid, 'SIGSTOP'),
    thaw: () => signalProcess(server.pid, 'SIGCONT'),
    async stop() {
      await server.stop()
      await rm(directory, { recursive: true, force: true })
    },
  }
}
