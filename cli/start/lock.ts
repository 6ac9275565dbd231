/**
 * One supervisor per data directory. The lock is a file lock of the operating system, taken through SQLite (part of
 * Node). It ends with the process that holds it, even after SIGKILL, so there are no stale locks.
 */
import { chmodSync, closeSync, openSync } from 'node:fs'
import { rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'

export interface Lock {
  release(): void
}

const sqliteBusy = 5

/**
 * Locks a data directory for this process.
 *
 * @returns `wasKilled`: the previous start did not stop cleanly, so programs of it may still be stopping
 * @throws Error if another process holds the lock
 */
export async function lockDataDir(dataDir: string): Promise<{ wasKilled: boolean; release: () => Promise<void> }> {
  const lock = takeLock(join(dataDir, 'lock'))
  if (!lock) throw new Error(`Another npm start uses ${dataDir}: stop it, or set DATA_DIR to another directory.`)
  const runningFile = join(dataDir, 'running.json')
  const wasKilled = (await stat(runningFile).catch(() => undefined)) !== undefined
  const release = async () => {
    await rm(runningFile, { force: true })
    lock.release()
  }
  return { wasKilled, release }
}

/** Undefined if another process holds the lock. */
export function takeLock(path: string): Lock | undefined {
  // Readable by its owner only, because whoever can read the file can also lock it.
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
  const file = new DatabaseSync(path, { timeout: 0 })
  try {
    // Keeps SQLite from creating a journal file: nothing is ever written.
    file.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    file.close()
    if ((error as { errcode?: number }).errcode === sqliteBusy) return undefined
    throw error
  }
  return { release: () => file.close() }
}
