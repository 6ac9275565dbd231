/**
 * PostgreSQL from an npm package, in a directory of ours: made on first use, recovered after a crash, and gone when we
 * are gone. Used by `npm start` (durable) and by the tests (not durable).
 */
import { randomUUID } from 'node:crypto'
import { chown, mkdir, open, readdir, readFile, realpath, rename, rm, stat, writeFile } from 'node:fs/promises'
import { basename, dirname, join, resolve } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { type Guarded, type GuardedCommand, guardScript, runGuarded } from './guarded.ts'
import { openLog } from './logs.ts'
import { pickFreePort } from './ports.ts'
import { findPostgresBinaries, type PostgresBinaries } from './postgres-binaries.ts'
import { describeProcess, signalProcess } from './processes.ts'
import { chooseIdentity, giveTo, type Identity, isRoot, runAs } from './unprivileged.ts'

const superuser = 'postgres'
/** Marks a server as started by us, in its command line. */
const marker = 'cluster_name=embedded'
/** Recovery after a crash replays the log since the last checkpoint, which takes minutes at worst. */
const readyWithinMs = 5 * 60_000
const pollMs = 20

export interface PostgresOptions {
  /** Made when it is not there; the directory above it must be. */
  dataDir: string
  /** 0 picks a free one. */
  port: number
  /** False: no fsync anywhere. Fast, and a power cut loses everything: for tests. */
  durable: boolean
  /** Set when the data directory is made; later it must be the same. */
  superuserPassword: string
  /** Further server settings. */
  settings?: Record<string, string>
  /** Where the server's own messages go. Default: beside the data directory. */
  logFile?: string
  /** Deleted when the server is stopped, also when that is because we were killed. For tests. */
  removeWhenStopped?: string[]
  /** Called when the server ends although nobody asked it to. */
  onExit?: (reason: string) => void
  /** Called before the one slow step, making a new data directory. */
  onInit?: () => void
  /** Abandons a start that is under way. */
  signal?: AbortSignal
}

export interface Postgres {
  port: number
  pid: number
  url(database: string, user?: string, password?: string): string
  exited: Promise<string>
  /** Lets transactions in progress be rolled back and data be flushed; after ten seconds it does not wait any longer. */
  stop(): Promise<void>
  /** Makes a stop that is under way wait no longer. The next start then replays the log. */
  forceStop(): void
  child: Guarded['guard']
}

export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const binaries = await findPostgresBinaries()
  const parent = dirname(resolve(options.dataDir))
  // The real path, because PostgreSQL's command line is compared with it.
  const dataDir = join(await realpath(parent), basename(resolve(options.dataDir)))
  const server = { ...options, dataDir, logFile: options.logFile ?? `${dataDir}.log` }

  const exists = await isDataDirectory(dataDir)
  const identity = await identityFor(dataDir, exists, binaries)
  if (!exists) {
    options.onInit?.()
    await initialise(server, identity, binaries)
  }
  const earlierPid = await clearTheWay(dataDir)
  const { guarded, port } = await run(server, identity, binaries, earlierPid)

  let stopping = false
  void guarded.exited.then(reason => {
    if (!stopping) options.onExit?.(reason)
  })
  return {
    port,
    pid: guarded.pid,
    child: guarded.guard,
    exited: guarded.exited,
    url: (database, user = superuser, password = options.superuserPassword) =>
      `postgresql://${encodeURIComponent(user)}:${encodeURIComponent(password)}@127.0.0.1:${port}/${encodeURIComponent(database)}`,
    forceStop: guarded.forceStop,
    async stop() {
      stopping = true
      await guarded.stop()
    },
  }
}

type Server = PostgresOptions & { logFile: string }

async function isDataDirectory(dataDir: string): Promise<boolean> {
  let entries: string[]
  try {
    entries = await readdir(dataDir)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
  if (entries.includes('PG_VERSION')) return true
  if (entries.length === 0) return false
  throw new Error(`${dataDir} holds files but no PostgreSQL data: move it away, or set DATA_DIR to another directory.`)
}

/** Undefined: as ourselves. */
async function identityFor(
  dataDir: string,
  exists: boolean,
  binaries: PostgresBinaries,
): Promise<Identity | undefined> {
  const owner = exists ? await stat(dataDir) : undefined
  if (!isRoot()) {
    if (owner && owner.uid !== process.getuid?.())
      throw new Error(`${dataDir} belongs to another user (${owner.uid}): start as that user or as root, or chown it.`)
    return undefined
  }
  const ownedByRoot = owner === undefined || owner.uid === 0
  const identity = await chooseIdentity(ownedByRoot ? undefined : { uid: owner.uid, gid: owner.gid }, {
    program: binaries.postgres,
    directories: [dirname(dataDir)],
  })
  // Root's own, when somebody restored it from a copy.
  if (exists && ownedByRoot) await giveTo(identity, dataDir)
  return identity
}

/**
 * initdb works in a sibling directory that takes its final name when it is complete, so that one that was killed midway
 * leaves nothing that looks like data.
 */
async function initialise(server: Server, identity: Identity | undefined, binaries: PostgresBinaries): Promise<void> {
  await removeAbandoned(server.dataDir)
  const draft = `${draftPrefix(server.dataDir)}${process.pid}-${randomUUID().slice(0, 8)}`
  const passwordFile = `${draft}.password`
  try {
    await mkdir(draft, { mode: 0o700 })
    await writeFile(passwordFile, server.superuserPassword, { mode: 0o600, flag: 'wx' })
    if (identity) for (const path of [draft, passwordFile]) await chown(path, identity.uid, identity.gid)
    await runInitdb(server, identity, binaries, draft, passwordFile)
    await rename(draft, server.dataDir)
    if (server.durable) await syncDirectory(dirname(server.dataDir))
  } finally {
    await rm(passwordFile, { force: true })
    await rm(draft, { recursive: true, force: true })
  }
}

function draftPrefix(dataDir: string): string {
  return `${dataDir}.init-`
}

/** Drafts are named for the process that makes them: those of processes that are gone are rubbish. */
async function removeAbandoned(dataDir: string): Promise<void> {
  const prefix = basename(draftPrefix(dataDir))
  for (const name of await readdir(dirname(dataDir))) {
    if (!name.startsWith(prefix)) continue
    const maker = Number.parseInt(name.slice(prefix.length), 10)
    if (maker !== process.pid && (await describeProcess(maker))?.command.includes('node')) continue
    await rm(join(dirname(dataDir), name), { recursive: true, force: true })
  }
}

async function runInitdb(
  server: Server,
  identity: Identity | undefined,
  binaries: PostgresBinaries,
  draft: string,
  passwordFile: string,
): Promise<void> {
  const args = [
    `--pgdata=${draft}`,
    `--username=${superuser}`,
    `--pwfile=${passwordFile}`,
    '--auth=scram-sha-256',
    '--encoding=UTF8',
    // The same order and the same character classes on every machine, whatever its own locale.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--data-checksums',
    ...(server.durable ? [] : ['--no-sync']),
  ]
  const initdb = await launch(server, {
    ...runAs(identity, binaries.initdb, args),
    stopSteps: [{ signal: 'SIGTERM', patienceMs: 2_000 }],
    removeWhenStopped: [draft, passwordFile],
  })
  const reason = await stoppedOnAbort(initdb, server.signal, () => initdb.exited)
  if (reason === 'exit 0') return
  throw new Error(`PostgreSQL's initdb failed (${reason}).\n${await initdb.messages()}`)
}

async function syncDirectory(path: string): Promise<void> {
  const directory = await open(path, 'r')
  await directory.sync()
  await directory.close()
}

/**
 * Deals with what postmaster.pid says of an earlier server, and answers its number once that server is certainly gone:
 * the number may by now be a zombie's or a stranger's.
 */
async function clearTheWay(dataDir: string): Promise<number | undefined> {
  const earlier = await readPostmasterPid(dataDir)
  if (earlier === undefined) return undefined
  if (Number.isNaN(earlier.pid)) {
    // Cut off by a crash while it was written: PostgreSQL would refuse to start over it.
    await rm(join(dataDir, 'postmaster.pid'))
    return undefined
  }
  const living = await describeProcess(earlier.pid)
  if (living === undefined || !` ${living.command} `.includes(` ${dataDir} `)) return earlier.pid

  const guard = await describeProcess(living.parentPid)
  const isGuarded = guard?.command.endsWith(`${basename(guardScript)} ${guard.parentPid}`)
  if (isGuarded || !living.command.includes(marker))
    throw new Error(`PostgreSQL already runs in ${dataDir} (process ${living.pid}): stop it, or set another DATA_DIR.`)
  await stopOrphan(living.pid)
  return earlier.pid
}

/** A server of ours whose guard was killed, or whose guard is on its way out because its own parent was killed. */
async function stopOrphan(pid: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    signalProcess(pid, signal)
    const deadline = Date.now() + 10_000
    while (Date.now() < deadline) {
      if ((await describeProcess(pid)) === undefined) return
      await sleep(pollMs)
    }
  }
  throw new Error(`PostgreSQL of an earlier start (process ${pid}) does not stop: kill it.`)
}

async function readPostmasterPid(dataDir: string): Promise<{ pid: number; ready: boolean } | undefined> {
  try {
    const lines = (await readFile(join(dataDir, 'postmaster.pid'), 'utf8')).split('\n')
    return { pid: Math.abs(Number.parseInt(lines[0]!, 10)), ready: lines[7]?.trim() === 'ready' }
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

async function run(
  server: Server,
  identity: Identity | undefined,
  binaries: PostgresBinaries,
  earlierPid: number | undefined,
): Promise<{ guarded: Guarded; port: number }> {
  const deadline = Date.now() + readyWithinMs
  for (;;) {
    server.signal?.throwIfAborted()
    const port = server.port || (await pickFreePort())
    const guarded = await launch(
      server,
      {
        ...runAs(identity, binaries.postgres, serverArguments(server, port)),
        stopSteps: [
          { signal: 'SIGINT', patienceMs: 10_000 },
          { signal: 'SIGQUIT', patienceMs: 5_000 },
        ],
        removeWhenStopped: server.removeWhenStopped,
      },
      // PostgreSQL takes whatever has the old number for a server and refuses to start, unless it is told that it
      // descends from that process. Deleting the file instead would also disarm its second check, the one for
      // backends of the old server that still run.
      earlierPid === undefined ? {} : { PG_GRANDPARENT_PID: String(earlierPid) },
    )
    if (await becomesReady(server, guarded, deadline)) return { guarded, port }

    const messages = await guarded.messages()
    // The backends of a server that was killed take a moment to notice.
    const isHeldByBackends = messages.includes('shared memory block') && messages.includes('still in use')
    const lostItsPort = server.port === 0 && messages.includes('could not create any TCP/IP sockets')
    if ((!isHeldByBackends && !lostItsPort) || Date.now() > deadline)
      throw new Error(`PostgreSQL did not start (${await guarded.exited}).\n${messages}`)
    await sleep(100)
  }
}

function serverArguments(server: Server, port: number): string[] {
  const settings: Record<string, string> = {
    listen_addresses: '127.0.0.1',
    port: String(port),
    unix_socket_directories: '',
    timezone: 'UTC',
    log_timezone: 'UTC',
    ...(server.durable ? {} : { fsync: 'off', synchronous_commit: 'off', full_page_writes: 'off' }),
    // The text of a failed statement can hold what was to be stored, encrypted secrets among it.
    log_min_error_statement: 'panic',
    ...server.settings,
  }
  const given = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', server.dataDir, '-c', marker, ...given]
}

async function becomesReady(server: Server, guarded: Guarded, deadline: number): Promise<boolean> {
  return stoppedOnAbort(guarded, server.signal, async () => {
    while (!guarded.hasExited()) {
      const status = await readPostmasterPid(server.dataDir)
      if (status?.pid === guarded.pid && status.ready) return true
      if (Date.now() > deadline) await guarded.stop()
      await sleep(pollMs)
    }
    return false
  })
}

/** Awaits `wait`, which must end when the program does; an abort stops the program and is then thrown. */
async function stoppedOnAbort<T>(
  guarded: Guarded,
  signal: AbortSignal | undefined,
  wait: () => Promise<T>,
): Promise<T> {
  const abandon = () => void guarded.stop()
  signal?.addEventListener('abort', abandon, { once: true })
  if (signal?.aborted) abandon()
  const result = await wait()
  signal?.removeEventListener('abort', abandon)
  if (signal?.aborted) await guarded.stop()
  signal?.throwIfAborted()
  return result
}

type Launched = Guarded & { messages(): Promise<string> }

async function launch(
  server: Server,
  command: Omit<GuardedCommand, 'cwd' | 'env'>,
  env: Record<string, string> = {},
): Promise<Launched> {
  const log = await openLog(server.logFile)
  try {
    const guarded = await runGuarded(
      {
        ...command,
        // A directory that any user can be in.
        cwd: '/',
        // Nothing of our own environment: PGPORT and its like change what PostgreSQL does.
        env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', ...env },
      },
      log.fd,
    )
    return { ...guarded, messages: log.tail }
  } finally {
    await log.close()
  }
}
