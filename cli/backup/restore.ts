import { execFile } from 'node:child_process'
import { mkdir, open, rm, stat } from 'node:fs/promises'
import { join, resolve } from 'node:path'
import { promisify } from 'node:util'
import { tarEnd } from './base-backup.ts'

/**
 * Unpacks a base backup into a new directory. PostgreSQL can be started on it, and replays its log as after a crash.
 *
 * @throws Error if the directory exists, the archive is incomplete, or `signal` aborts; the directory is then removed
 */
export async function restore(file: string, directory: string, signal?: AbortSignal): Promise<void> {
  if (await stat(directory).catch(() => null)) throw new Error(`${directory} already exists: choose another one.`)
  await mkdir(directory, { mode: 0o700, recursive: true })
  try {
    await requireTarEnd(file)
    const extract = ['--extract', '--no-same-owner', '--file', file, '--directory', directory]
    await promisify(execFile)('tar', extract, { signal })
    await stat(join(directory, 'backup_label'))
  } catch (error) {
    await rm(directory, { recursive: true, force: true })
    signal?.throwIfAborted()
    const reason = (error as { stderr?: string }).stderr?.trim().split('\n')[0] ?? (error as Error).message
    throw new Error(`${file} is not a complete base backup (${reason}): use another one.`, { cause: error })
  }
}

/**
 * Settings for PostgreSQL on a restored copy, with absolute paths. Patroni names these files by their path on the machine that was backed
 * up.
 */
export function settingsOfCopy(directory: string): Record<string, string> {
  return { hba_file: resolve(directory, 'pg_hba.conf'), ident_file: resolve(directory, 'pg_ident.conf') }
}

/** tar does not notice that an archive was truncated between two of its files. */
async function requireTarEnd(file: string): Promise<void> {
  const handle = await open(file)
  try {
    const { size } = await handle.stat()
    const end = Buffer.alloc(tarEnd.length)
    const { bytesRead } = await handle.read(end, 0, end.length, Math.max(0, size - end.length))
    if (bytesRead < end.length || !end.equals(tarEnd)) throw new Error('it is truncated')
  } finally {
    await handle.close()
  }
}
