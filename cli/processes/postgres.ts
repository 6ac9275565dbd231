/**
 * Runs PostgreSQL from an npm package: creates the data directory on first use, recovers after a crash, and stops with
 * the process that started it. Used by `npm start` (durable) and by the tests (not durable).
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
/** Part of the command line of every server that this module starts. */
const marker = 'cluster_name=embedded'
/** Long, because recovery after a crash replays the log since the last checkpoint, which can take minutes. */
const startTimeoutMs = 5 * 60_000
const pollMs = 20

export interface PostgresOptions {
  /** Created if it does not exist. Its parent directory must exist. */
  dataDir: string
  /** 0 picks a free port. */
  port: number
  /** False disables fsync: fast, but a power failure loses everything. For tests. */
  durable: boolean
  /** Set when the data directory is created. Later starts must pass the same one. */
  superuserPassword: string
  /** Directories and files that the server needs to read besides its data. */
  reads?: string[]
  /** Waits until the server has replayed its archive and is a primary, which may take hours. */
  isRecovery?: boolean
  /** Further server settings. */
  settings?: Record<string, string>
  /** The log of the server (default: next to the data directory). */
  logFile?: string
  /** Deleted when the server was stopped, also if that is because this process was killed. For tests. */
  removeWhenStopped?: string[]
  /** Called when the server exits unexpectedly. */
  onExit?: (reason: string) => void
  /** Called before a new data directory is created, which takes some seconds. */
  onInit?: () => void
  /** Aborts the start. */
  signal?: AbortSignal
}

export interface Postgres {
  port: number
  pid: number
  url(database: string, user?: string, password?: string): string
  exited: Promise<string>
  /** Whether it may read every file of this machine, because its user cannot enter a directory that it needs. */
  readsAllFiles: boolean
  /** Rolls back transactions in progress and flushes all data. After ten seconds it stops without that. */
  stop(): Promise<boolean>
  /** Shortens a stop in progress. The next start then replays the log. */
  forceStop(): void
  child: Guarded['guard']
}

/**
 * Resolves when the server accepts connections.
 *
 * @throws Error with the server's messages, if it does not start
 */
export async function startPostgres(options: PostgresOptions): Promise<Postgres> {
  const binaries = await findPostgresBinaries()
  const parent = dirname(resolve(options.dataDir))
  // The real path, because stopEarlierServer compares it with PostgreSQL's command line.
  const dataDir = join(await realpath(parent), basename(resolve(options.dataDir)))
  const server = { ...options, dataDir, logFile: options.logFile ?? `${dataDir}.log` }

  const exists = await isDataDirectory(dataDir)
  const identity = await identityFor(server, exists, binaries)
  if (!exists) {
    options.onInit?.()
    await initialize(server, identity, binaries)
  }
  const earlierPid = await stopEarlierServer(dataDir)
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
    readsAllFiles: identity !== undefined && identity.prefix.length > 0,
    url: (database, user = superuser, password = options.superuserPassword) =>
      `postgresql://${encodeURIComponent(user)}:${encodeURIComponent(password)}@127.0.0.1:${port}/${encodeURIComponent(database)}`,
    forceStop: guarded.forceStop,
    async stop() {
      stopping = true
      return guarded.stop()
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

/** The user to run as. Undefined: the current user. */
async function identityFor(
  { dataDir, reads }: Server,
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
    files: reads,
  })
  // It belongs to root if somebody restored it from a copy.
  if (exists && ownedByRoot) await giveTo(identity, dataDir)
  return identity
}

/**
 * Runs initdb in a sibling directory, which gets its final name when it is complete. An interrupted initdb therefore
 * leaves nothing that looks like a data directory.
 */
async function initialize(server: Server, identity: Identity | undefined, binaries: PostgresBinaries): Promise<void> {
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

/** Removes the drafts of processes that have exited: the name of a draft contains the pid of its process. */
async function removeAbandoned(dataDir: string): Promise<void> {
  const prefix = basename(draftPrefix(dataDir))
  for (const name of await readdir(dirname(dataDir))) {
    if (!name.startsWith(prefix)) continue
    const pid = Number.parseInt(name.slice(prefix.length), 10)
    if (pid !== process.pid && (await describeProcess(pid))?.command.includes('node')) continue
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
    // The same sort order and character classes on every machine, whatever its locale.
    '--locale=C',
    '--locale-provider=builtin',
    '--builtin-locale=C.UTF-8',
    '--data-checksums',
    ...(server.durable ? [] : ['--no-sync']),
  ]
  const initdb = await launch(server, {
    ...runAs(identity, binaries.initdb, args),
    stopSteps: [{ signal: 'SIGTERM', timeoutMs: 2_000 }],
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
 * Stops the server that postmaster.pid names, if it is an orphan of an earlier start.
 *
 * @returns the pid in postmaster.pid, once that server has exited. Another process, or a zombie, may have that pid now.
 * @throws Error if another process uses the data directory
 */
async function stopEarlierServer(dataDir: string): Promise<number | undefined> {
  const earlier = await readPostmasterPid(dataDir)
  if (earlier === undefined) return undefined
  if (Number.isNaN(earlier.pid)) {
    // A crash truncated the file while it was written. PostgreSQL does not start while it exists.
    await rm(join(dataDir, 'postmaster.pid'))
    return undefined
  }
  const server = await describeProcess(earlier.pid)
  if (server === undefined || !` ${server.command} `.includes(` ${dataDir} `)) return earlier.pid

  const guard = await describeProcess(server.parentPid)
  const isGuarded = guard?.command.endsWith(`${basename(guardScript)} ${guard.parentPid}`)
  if (isGuarded || !server.command.includes(marker))
    throw new Error(`PostgreSQL already runs in ${dataDir} (process ${server.pid}): stop it, or set another DATA_DIR.`)
  await stopOrphan(server.pid)
  return earlier.pid
}

/** Stops a server whose guard was killed, or whose guard is stopping because the guard's parent was killed. */
async function stopOrphan(pid: number): Promise<void> {
  for (const signal of ['SIGINT', 'SIGQUIT', 'SIGKILL'] as const) {
    signalProcess(pid, signal)
    const deadline = Date.now() + 10_000
    while (Date.now() < deadline) {
      if ((await describeProcess(pid)) === undefined) return
      await sleep(pollMs)
    }
  }
  throw new Error(`The PostgreSQL of an earlier start (process ${pid}) does not stop: kill it.`)
}

async function readPostmasterPid(dataDir: string): Promise<{ pid: number; status: string } | undefined> {
  try {
    const lines = (await readFile(join(dataDir, 'postmaster.pid'), 'utf8')).split('\n')
    return { pid: Math.abs(Number.parseInt(lines[0]!, 10)), status: lines[7]?.trim() ?? '' }
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
  const deadline = server.isRecovery ? Number.POSITIVE_INFINITY : Date.now() + startTimeoutMs
  for (;;) {
    server.signal?.throwIfAborted()
    const port = server.port || (await pickFreePort())
    const guarded = await launch(
      server,
      {
        ...runAs(identity, binaries.postgres, serverArguments(server, port)),
        stopSteps: [
          { signal: 'SIGINT', timeoutMs: 10_000 },
          { signal: 'SIGQUIT', timeoutMs: 5_000 },
        ],
        removeWhenStopped: server.removeWhenStopped,
      },
      // PostgreSQL takes any process with the old pid for a running server and does not start, unless this variable
      // names that pid as its ancestor. Deleting postmaster.pid instead would also disable PostgreSQL's check for
      // backends of the old server that still run.
      earlierPid === undefined ? {} : { PG_GRANDPARENT_PID: String(earlierPid) },
    )
    if (await becomesReady(server, guarded, deadline)) return { guarded, port }

    const messages = await guarded.messages()
    // The backends of a killed server take a moment to exit.
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
    // The text of a failed statement can contain encrypted secrets.
    log_min_error_statement: 'panic',
    ...server.settings,
  }
  const given = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  return ['-D', server.dataDir, '-c', marker, ...given]
}

async function becomesReady(server: Server, guarded: Guarded, deadline: number): Promise<boolean> {
  // `standby`: it is in recovery, and accepts connections for reads unless hot_standby is off.
  const ready = server.isRecovery ? ['ready'] : ['ready', 'standby']
  return stoppedOnAbort(guarded, server.signal, async () => {
    while (!guarded.hasExited()) {
      const found = await readPostmasterPid(server.dataDir)
      if (found?.pid === guarded.pid && ready.includes(found.status)) return true
      if (Date.now() > deadline) await guarded.stop()
      await sleep(pollMs)
    }
    return false
  })
}

/** Awaits `wait`, which must settle when the program exits. An abort stops the program, and is then thrown. */
async function stoppedOnAbort<T>(
  guarded: Guarded,
  signal: AbortSignal | undefined,
  wait: () => Promise<T>,
): Promise<T> {
  const stop = () => void guarded.stop()
  signal?.addEventListener('abort', stop, { once: true })
  if (signal?.aborted) stop()
  const result = await wait()
  signal?.removeEventListener('abort', stop)
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
        // A directory that any user can enter.
        cwd: '/',
        // Not our own environment: variables such as PGPORT change what PostgreSQL does.
        env: { PATH: process.env.PATH ?? '', LC_ALL: 'C', ...env },
      },
      log.fd,
    )
    return { ...guarded, messages: log.tail }
  } finally {
    await log.close()
  }
}
