/** The log files of an embedded installation: bounded while they are written, and quoted when something does not start. */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { copyFile, open, rename, rm, stat } from 'node:fs/promises'

const fullAtBytes = 10 * 1024 * 1024
const keptFiles = 3
const lookEveryMs = 1_000

/** Opens a log to write at its end. */
export async function openLog(path: string): Promise<OpenLog> {
  const offset = await sizeOf(path)
  const file = await open(path, 'a', 0o600)
  return { fd: file.fd, close: () => file.close(), tail: () => readTail(path, offset) }
}

export interface OpenLog {
  fd: number
  close(): Promise<void>
  /** The last lines of what has been written since it was opened. */
  tail(): Promise<string>
}

/** Rotates each of these logs whenever it is full, until it is told to end. */
export function keepRotated(paths: string[]): { end(): Promise<void> } {
  let looking: Promise<void> | undefined
  const timer = setInterval(() => {
    looking ??= rotateAll().finally(() => {
      looking = undefined
    })
  }, lookEveryMs).unref()

  async function rotateAll(): Promise<void> {
    // One that cannot be rotated, because the disk is full, is tried again: it cannot grow either.
    for (const path of paths) await rotateLog(path).catch(() => {})
  }

  return {
    async end() {
      clearInterval(timer)
      await looking
    },
  }
}

/**
 * A full log becomes `….1`, its predecessor `….2`, and so on. It is copied and then cut to nothing, because programs that
 * write it hold it open: they go on at its beginning, as they write in append mode.
 */
export async function rotateLog(path: string): Promise<void> {
  if ((await sizeOf(path)) < fullAtBytes) return
  const name = (age: number) => `${path}.${age}`
  const draft = `${path}.draft`
  // First: on a full disk it makes room for the copy.
  await rm(name(keptFiles), { force: true })
  try {
    await copyFile(path, draft)
    moveTail(path, draft)
  } catch (error) {
    await rm(draft, { force: true })
    throw error
  }
  for (let age = keptFiles - 1; age > 0; age--) await rename(name(age), name(age + 1)).catch(ignoreMissing)
  await rename(draft, name(1))
}

/**
 * Appends what was written since the copy was made, and empties the log. Synchronously: only what is written between the
 * last read and the next call is lost.
 */
function moveTail(path: string, copy: string): void {
  const [from, to] = [openSync(path, 'r+'), openSync(copy, 'r+')]
  try {
    const buffer = Buffer.alloc(64 * 1024)
    let at = fstatSync(to).size
    for (let length = -1; length !== 0; at += length) {
      length = readSync(from, buffer, 0, buffer.length, at)
      for (let written = 0; written < length; )
        written += writeSync(to, buffer, written, length - written, at + written)
    }
    ftruncateSync(from)
  } finally {
    closeSync(from)
    closeSync(to)
  }
}

async function readTail(path: string, openedAt: number): Promise<string> {
  const longest = 16 * 1024
  const end = await sizeOf(path)
  // Rotated since, when it is shorter than it was.
  const from = Math.max(openedAt > end ? 0 : openedAt, end - longest)
  const file = await open(path, 'r')
  try {
    const { buffer, bytesRead } = await file.read(Buffer.alloc(end - from), 0, end - from, from)
    return buffer.toString('utf8', 0, bytesRead).trimEnd().split('\n').slice(-15).join('\n')
  } finally {
    await file.close()
  }
}

async function sizeOf(path: string): Promise<number> {
  return (await stat(path).catch(ignoreMissing))?.size ?? 0
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== 'ENOENT') throw error
}
