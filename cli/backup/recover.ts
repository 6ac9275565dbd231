/** Replays archived write-ahead log on a restored base backup, up to a time. */
import { open, rm, writeFile } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { setInterval } from 'node:timers/promises'
import { Progress } from '../admin/progress.ts'
import { startPostgres } from '../processes/postgres.ts'
import { type Archive, readArchive } from './archive.ts'
import { readStart } from './manifest.ts'
import { settingsOfCopy } from './restore.ts'

const pollMs = 200

export type Target = {
  /** The directory with the archived log. */
  wal: string
  /** Replays commits up to this time; without it, the whole archive. */
  time?: Date | undefined
  /** Without it, the latest timeline in the archive. */
  timeline?: number | undefined
}

export type Recovered = {
  /** When the last transaction that was replayed was committed; null if none was. */
  lastCommit: Date | null
  timeline: number
}

/**
 * Starts PostgreSQL on a restored base backup, which replays the log and begins a new timeline, and stops it. Nothing connects to it.
 *
 * @param directory made by `restore`
 * @throws Error that says what the archive lacks, or why the time cannot be reached
 */
export async function recover(directory: string, target: Target, signal: AbortSignal): Promise<Recovered> {
  const start = await readStart(directory)
  // Without a commit in between, PostgreSQL would accept an earlier time, and give what was committed after it.
  if (target.time && target.time < start.at)
    throw new Error(
      `The backup was begun at ${start.at.toISOString()}, after ${target.time.toISOString()}: take an older backup.`,
    )
  const archive = await readArchive(resolve(target.wal), join(directory, 'pg_wal'), start, target.timeline)
  if (!target.time && archive.missing)
    throw new Error(`${lacks(archive)}. Copy it there, or restore to a time before it with --to-time.`)
  // A backup of a standby has it, and would follow its primary instead of ending.
  await rm(join(directory, 'standby.signal'), { force: true })
  await writeFile(join(directory, 'recovery.signal'), '')

  // One of an earlier attempt says what happened then.
  const log = new RecoveryLog(`${directory}.recovery.log`)
  await rm(log.path, { force: true })
  const watching = watch(log, signal)
  try {
    const postgres = await startPostgres({
      dataDir: directory,
      port: 0,
      durable: true,
      // No connection is made.
      superuserPassword: '',
      settings: { ...settingsOfCopy(directory), ...settingsFor(archive, target) },
      logFile: log.path,
      reads: [archive.directory, archive.file],
      isRecovery: true,
      signal,
    })
    await postgres.stop()
  } catch (error) {
    if (signal.aborted) await rm(log.path, { force: true })
    signal.throwIfAborted()
    await log.read()
    throw new Error(
      `${explain(log, archive, target) ?? (error as Error).message}\nThe log of PostgreSQL is ${log.path}.`,
      {
        cause: error,
      },
    )
  } finally {
    await watching.end()
  }
  await log.read()
  // PostgreSQL takes a damaged record for the end of the log.
  if (!target.time && log.lastSegment !== archive.last)
    throw new Error(`${cannotBeRead(log, archive)}.\nThe log of PostgreSQL is ${log.path}.`)
  await rm(log.path)
  return { lastCommit: log.lastCommit, timeline: log.timeline }
}

function settingsFor({ directory }: Archive, { time, timeline }: Target): Record<string, string> {
  return {
    restore_command: restoreCommand(directory),
    recovery_target_timeline: timeline === undefined ? 'latest' : String(timeline),
    recovery_target_action: 'promote',
    // PostgreSQL does not know the names of zones yet when it reads its command line, not even Z.
    ...(time && { recovery_target_time: time.toISOString().replace('Z', '+00') }),
    // Accepts no connections before the recovery has ended.
    hot_standby: 'off',
    // Nothing is archived yet, but the next start archives the history of the new timeline.
    archive_mode: 'on',
    archive_command: '',
    archive_library: '',
    // A standby's would remove segments from the archive.
    archive_cleanup_command: '',
    recovery_end_command: '',
    // Those in the backup may need files of another machine.
    shared_preload_libraries: '',
    ssl: 'off',
    // `RecoveryLog` reads these messages.
    log_destination: 'stderr',
    logging_collector: 'off',
    log_min_messages: 'warning',
    lc_messages: 'C',
  }
}

/**
 * The shell command that copies a segment. pg_receivewal names the one that it is writing `.partial`. PostgreSQL takes an exit status
 * of 1 for the end of the archive, and gives up at one above 125: a segment that exists must be copied.
 */
function restoreCommand(directory: string): string {
  // PostgreSQL replaces %f and %p.
  const archive = `'${directory.replaceAll("'", `'\\''`).replaceAll('%', '%%')}'`
  return `for each in ${archive}/%f ${archive}/%f.partial; do if [ -e "$each" ]; then cp "$each" %p || exit 255; exit 0; fi; done; exit 1`
}

/** What PostgreSQL says during a recovery. */
class RecoveryLog {
  readonly path: string
  #position = 0
  #text = ''
  restored = 0
  lastSegment: string | null = null

  constructor(path: string) {
    this.path = path
  }

  async read(): Promise<void> {
    const file = await open(this.path).catch(() => null)
    if (!file) return
    try {
      const { size } = await file.stat()
      const { buffer } = await file.read(Buffer.alloc(size - this.#position), 0, size - this.#position, this.#position)
      this.#position = size
      this.#text += buffer.toString('utf8')
    } finally {
      await file.close()
    }
    const restored = [...this.#text.matchAll(/restored log file "([0-9A-F]{24})" from archive/g)]
    this.restored = restored.length
    // At the end, PostgreSQL reads earlier ones again. Their timelines may differ.
    const inOrder = restored.map(([, name]) => name!).sort((a, b) => (a.slice(8) < b.slice(8) ? -1 : 1))
    this.lastSegment = inOrder.at(-1) ?? null
  }

  find(pattern: RegExp): string | null {
    return pattern.exec(this.#text)?.[1] ?? null
  }

  get lastCommit(): Date | null {
    // In UTC, as `startPostgres` sets it.
    const at = this.find(/last completed transaction was at log time (.*)\+00/)
    return at ? new Date(`${at.replace(' ', 'T')}Z`) : null
  }

  get timeline(): number {
    return Number(this.find(/selected new timeline ID: (\d+)/))
  }
}

function watch(log: RecoveryLog, signal: AbortSignal): { end(): Promise<void> } {
  const progress = new Progress(process.stderr)
  const ended = new AbortController()
  const watching = (async () => {
    for await (const _ of setInterval(pollMs, undefined, { signal: AbortSignal.any([ended.signal, signal]) })) {
      await log.read()
      progress.show(log.restored, null, 'segments of the log replayed')
    }
  })().catch(() => {})
  return {
    async end() {
      ended.abort()
      await watching
      progress.clear()
    },
  }
}

/** Why PostgreSQL did not reach the target; null for any other failure. */
function explain(log: RecoveryLog, archive: Archive, { time }: Target): string | null {
  const target = time?.toISOString()
  if (log.find(/(requested recovery stop point is before consistent recovery point)/))
    return `The backup was not complete yet at ${target}: take an older backup.`
  const truncated = log.find(/archive file "(\w+)" has wrong size/)
  if (truncated) return `${truncated} in ${archive.directory} is incomplete: copy it there again.`
  if (!log.find(/(recovery ended before configured recovery target was reached)/)) return null
  const until = `The last transaction before that was committed at ${log.lastCommit?.toISOString() ?? 'the time of the backup'}`
  if (archive.missing) return `${lacks(archive)}. ${until}: copy the segment there, or choose an earlier time.`
  if (log.lastSegment !== archive.last) return `${cannotBeRead(log, archive)}. ${until}: choose an earlier time.`
  return `The archive ends before ${target}. ${until}: choose an earlier time, or leave out --to-time to restore everything.`
}

function lacks({ directory, missing, last }: Archive): string {
  return `${directory} lacks ${missing}, although it has ${last}`
}

function cannotBeRead({ lastSegment }: RecoveryLog, { directory, last }: Archive): string {
  return `The log in ${directory} is damaged in or after ${lastSegment ?? 'its first segment'}: it goes on to ${last}`
}
