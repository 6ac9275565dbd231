import { execFile } from 'node:child_process'
import { constants } from 'node:fs'
import { chmod, cp, mkdir, open, readdir, rename, rm, truncate } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { execute, query } from '../test/setup/database.ts'
import { makeTempDir } from '../test/setup/temp.ts'
import { until } from '../test/setup/until.ts'
import { type Postgres, startPostgres } from './processes/postgres.ts'

// A separate PostgreSQL, because it archives its log. Each segment has one of the rows 1 to 3.
let directory: string
let archive: string
let postgres: Postgres
const firstSegment = '000000010000000000000001'
const backupFile = () => join(directory, 'base.tar')
/** A time after the row was committed, and before the next one. */
const committed: string[] = []
/** The segment that has the row. */
const segments: string[] = []

function start(dataDir: string, archiveDirectory: string): Promise<Postgres> {
  return startPostgres({
    dataDir,
    port: 0,
    durable: false,
    superuserPassword: 'superuser',
    settings: {
      archive_mode: 'on',
      archive_library: 'basic_archive',
      'basic_archive.archive_directory': archiveDirectory,
      // The order of commits is that of their times only if no two have the same one.
      autovacuum: 'off',
    },
  })
}

beforeAll(async () => {
  directory = await makeTempDir('to-time')
  await chmod(directory, 0o711)
  archive = join(directory, "operator's 100% archive")
  await mkdir(archive)
  // PostgreSQL runs as another user if the tests run as root.
  await chmod(archive, 0o777)
  postgres = await start(join(directory, 'postgres'), archive)
  await execute(postgres.url('postgres'), 'create table written (row int)')
  await backup('take', backupFile())
  await secondPasses()
  for (const row of [1, 2, 3]) await writeRow(postgres, row)
})
afterAll(() => postgres.stop())

/** A backup says in whole seconds when it was begun, so a time in the same second is rejected. */
async function secondPasses(): Promise<void> {
  const now = async () => Number((await query(postgres.url('postgres'), 'select clock_timestamp() as at'))[0]!.at)
  const endMs = (await now()) + 1_000
  await until('a second has passed', async () => (await now()) >= endMs)
}

async function writeRow(server: Postgres, row: number): Promise<void> {
  const url = server.url('postgres')
  const [before] = await query(url, `insert into written values (${row}) returning clock_timestamp() as at`)
  committed[row] = await until('a millisecond has passed', async () => {
    const [now] = await query(url, `select clock_timestamp() as at, pg_walfile_name(pg_current_wal_lsn()) as segment`)
    segments[row] = now!.segment as string
    return Number(now!.at) > Number(before!.at) && (now!.at as Date).toISOString()
  })
  await until('the clock shows another time', async () => {
    const [now] = await query(url, 'select clock_timestamp() as at')
    return (now!.at as Date).toISOString() > committed[row]!
  })
  await execute(url, 'select pg_switch_wal()')
  await until('the segment is archived', async () => (await readdir(archive)).includes(segments[row]!))
}

function startBackup(...args: string[]) {
  const script = fileURLToPath(new URL('backup.ts', import.meta.url))
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, BACKUP_DATABASE_URL: postgres.url('postgres') }
  return promisify(execFile)(process.execPath, [script, ...args], { env })
}

/** @throws Error with the standard error of the command, if it fails */
async function backup(...args: string[]): Promise<string> {
  const { stdout } = await startBackup(...args).catch(error => {
    throw new Error(error.stderr)
  })
  return stdout
}

/** Restores into a new directory, and returns what the command prints. @throws Error as `backup` */
async function restore(name: string, wal: string, ...args: string[]): Promise<string> {
  const printed = await backup('restore', backupFile(), join(directory, name), '--wal', wal, ...args)
  expect(await readdir(directory)).not.toContain(`${name}.recovery.log`)
  return printed
}

async function rowsOf(dataDir: string): Promise<number[]> {
  const restored = await startPostgres({ dataDir, port: 0, durable: false, superuserPassword: 'superuser' })
  const rows = await query(restored.url('postgres'), 'select row from written order by row')
  await restored.stop()
  return rows.map(({ row }) => row as number)
}

/** A copy of the archive that a test may damage. */
async function copyArchive(name: string): Promise<string> {
  const copy = join(directory, name)
  await cp(archive, copy, { recursive: true })
  return copy
}

test('a restore to a time has what was committed until then, on a new timeline', async () => {
  const printed = await restore('second', archive, '--to-time', committed[2]!)
  expect(printed).toContain(', on timeline 2. The last transaction was committed at ')
  expect(await rowsOf(join(directory, 'second'))).toEqual([1, 2])
})

test('a restore without a time replays the whole archive, also the segment that pg_receivewal is writing', async () => {
  const copy = await copyArchive('partial')
  await rename(join(copy, segments[3]!), join(copy, `${segments[3]}.partial`))
  await restore('all', copy)
  expect(await rowsOf(join(directory, 'all'))).toEqual([1, 2, 3])
})

test('a missing segment is named, and the directory is removed', async () => {
  const copy = await copyArchive('gap')
  await rm(join(copy, segments[2]!))
  const lacks = `${copy} lacks ${segments[2]}, although it has ${segments[3]}.`
  await expect(restore('gap-all', copy)).rejects.toThrow(`${lacks} Copy it there, or restore to a time before it`)
  await expect(restore('gap-late', copy, '--to-time', committed[2]!)).rejects.toThrow(
    `${lacks} The last transaction before that was committed at `,
  )
  // PostgreSQL knows that it has reached a time when it reads a later commit.
  await expect(restore('gap-early', copy, '--to-time', committed[1]!)).rejects.toThrow(lacks)
  expect((await readdir(directory)).filter(name => /^gap-[a-z]+$/.test(name))).toEqual([])
})

test('a time after the end of the archive is rejected with the last one that can be restored', async () => {
  await expect(restore('future', archive, '--to-time', '2999-01-01T00:00:00Z')).rejects.toThrow(
    /^The archive ends before 2999-01-01T00:00:00\.000Z\. The last transaction before that was committed at \d{4}-/,
  )
  // Its log, which is kept, says when the last one was committed. The next attempt has an earlier one.
  const printed = await restore('future', archive, '--to-time', committed[1]!)
  const [, lastCommit] = /was committed at (\S+Z)\./.exec(printed)!
  expect(lastCommit! <= committed[1]!).toBe(true)
})

test('a time before the backup is rejected', async () => {
  await expect(restore('past', archive, '--to-time', '2020-01-01T01:00:00+01:00')).rejects.toThrow(
    /^The backup was begun at \S+Z, after 2020-01-01T00:00:00\.000Z: take an older backup\.$/m,
  )
})

test('a segment that is truncated or damaged is named', async () => {
  const truncated = await copyArchive('truncated')
  // A full disk leaves empty ones. The recovery does not need this one.
  await truncate(join(truncated, firstSegment))
  await truncate(join(truncated, segments[2]!), 1_000_000)
  await expect(restore('truncated-copy', truncated, '--to-time', committed[2]!)).rejects.toThrow(
    `${segments[2]} in ${truncated} is incomplete: copy it there again.`,
  )
  const damaged = await copyArchive('damaged')
  const file = await open(join(damaged, segments[2]!), 'r+')
  await file.write(Buffer.alloc(16 * 1024 * 1024, 0xff))
  await file.close()
  await expect(restore('damaged-copy', damaged)).rejects.toThrow(
    `The log in ${damaged} is damaged in or after ${segments[2]}: it goes on to ${segments[3]}.`,
  )
})

test('a directory without write-ahead log of the time after the backup is rejected', async () => {
  await expect(restore('none', join(directory, 'missing'))).rejects.toThrow(': correct --wal.')
  const empty = join(directory, 'empty')
  await mkdir(empty)
  await expect(restore('none', empty)).rejects.toThrow(`${empty} has no write-ahead log: `)
  const old = await copyArchive('old')
  for (const name of await readdir(old)) if (name !== firstSegment) await rm(join(old, name))
  const incomplete = await copyArchive('incomplete')
  for (const name of await readdir(incomplete)) await truncate(join(incomplete, name))
  await expect(restore('none', incomplete)).rejects.toThrow(`Every segment in ${incomplete} is incomplete: `)
  await expect(restore('none', old)).rejects.toThrow(`${old} has no write-ahead log of the time after the backup`)
})

test('an interrupted restore stops its PostgreSQL and leaves neither directory nor log', async () => {
  const copy = await copyArchive('blocked')
  const blocked = join(copy, segments[2]!)
  await rm(blocked)
  await promisify(execFile)('mkfifo', ['--mode=666', blocked])
  const running = startBackup('restore', backupFile(), join(directory, 'interrupted'), '--wal', copy)
  const failed = expect(running).rejects.toMatchObject({ stderr: expect.stringContaining('Interrupted.') })
  // Succeeds when somebody is reading the pipe: PostgreSQL copies the segment.
  const pipe = await until('the recovery has reached the segment', () =>
    open(blocked, constants.O_WRONLY | constants.O_NONBLOCK).catch(() => false as const),
  )
  expect(await readdir(directory)).toContain('interrupted')
  running.child.kill('SIGTERM')
  await failed
  await pipe.close()
  expect((await readdir(directory)).filter(name => name.startsWith('interrupted'))).toEqual([])
})

test('a time needs its zone, and the archive', async () => {
  for (const time of ['2026-11-20T14:03:00', '2026-11-20', '2026-02-30T14:03:00Z', 'yesterday'])
    await expect(restore('zone', archive, '--to-time', time)).rejects.toThrow(
      `--to-time must be a time with its zone, such as 2027-01-31T12:00:00Z, not "${time}"`,
    )
  await expect(backup('restore', backupFile(), join(directory, 'zone'), '--to-time', committed[1]!)).rejects.toThrow(
    '--to-time and --timeline need --wal ARCHIVE',
  )
})

test('after a restore that archived into the same directory, either history can be restored', async () => {
  await restore('first', archive, '--to-time', committed[1]!)
  const restored = await start(join(directory, 'first'), archive)
  await execute(restored.url('postgres'), 'insert into written values (4)')
  const [now] = await query(restored.url('postgres'), 'select pg_walfile_name(pg_switch_wal()) as segment')
  await until('its segment is archived', async () => (await readdir(archive)).includes(now!.segment as string))
  await restored.stop()
  await restore('new-history', archive, '--timeline', '2')
  expect(await rowsOf(join(directory, 'new-history'))).toEqual([1, 4])
  await restore('old-history', archive, '--timeline', '1')
  expect(await rowsOf(join(directory, 'old-history'))).toEqual([1, 2, 3])
})

test('a backup is taken although the archive refuses the log', async () => {
  const server = postgres.url('postgres')
  await execute(server, `alter system set basic_archive.archive_directory = '${join(directory, 'missing')}'`)
  await execute(server, 'select pg_reload_conf()')
  await backup('take', join(directory, 'unarchived.tar'))
})
