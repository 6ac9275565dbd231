/**
 * One supervisor per data directory. The lock is the operating system's, on a file that SQLite (part of Node) opens
 * for us: it ends with the process that holds it, however that dies, so there are no stale locks to judge.
 */
import { chmodSync, closeSync, openSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

export interface Lock {
  release(): void
}

/** Undefined when another process holds it. */
export function takeLock(path: string): Lock | undefined {
  // For our eyes only: whoever can read the file could lock us out.
  closeSync(openSync(path, 'a', 0o600))
  chmodSync(path, 0o600)
  const file = new DatabaseSync(path, { timeout: 0 })
  try {
    // No journal file beside it: nothing is ever written.
    file.exec('PRAGMA journal_mode = MEMORY; BEGIN EXCLUSIVE')
  } catch (error) {
    file.close()
    if ((error as { errcode?: number }).errcode === sqliteBusy) return undefined
    throw error
  }
  return { release: () => file.close() }
}

const sqliteBusy = 5
