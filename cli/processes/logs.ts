/** The log files of `npm start`: rotated by size while programs write them, and quoted when a program does not start. */
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import { copyFile, open, rename, rm, stat } from 'node:fs/promises'

const maxLogBytes = 10 * 1024 * 1024
const keptFiles = 3
const rotationIntervalMs = 1_000

/** Opens a log for appending. */
export async function openLog(path: string): Promise<OpenLog> {
  const offset = await sizeOf(path)
  const file = await open(path, 'a', 0o600)
  return { fd: file.fd, close: () => file.close(), tail: () => readTail(path, offset) }
}

export interface OpenLog {
  fd: number
  close(): Promise<void>
  /** The last lines written since the log was opened: at most 15, and 16 KiB. */
  tail(): Promise<string>
}

/** Rotates each of these logs whenever it is full, until `end`. */
export function keepRotated(paths: string[]): { end(): Promise<void> } {
  let rotation: Promise<void> | undefined
  const timer = setInterval(() => {
    rotation ??= rotateAll().finally(() => {
      rotation = undefined
    })
  }, rotationIntervalMs).unref()

  async function rotateAll(): Promise<void> {
    // A failed rotation is retried at the next interval. It fails on a full disk, where the log does not grow either.
    for (const path of paths) await rotateLog(path).catch(() => {})
  }

  return {
    async end() {
      clearInterval(timer)
      await rotation
    },
  }
}

/**
 * Rotates a log if it is full: it becomes `….1`, the previous one `….2`, and so on. The log is copied and truncated, not
 * renamed, because programs keep it open: they write in append mode and continue at its new end.
 */
export async function rotateLog(path: string): Promise<void> {
  if ((await sizeOf(path)) < maxLogBytes) return
  const name = (age: number) => `${path}.${age}`
  const draft = `${path}.draft`
  // Before the copy, to make room for it on a full disk.
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
 * Appends to the copy what was written to the log since, and empties the log. Synchronous, to keep the gap between the
 * last read and the truncation short: lines written in that gap are lost.
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
  // A log that is shorter than before was rotated: read it from its beginning.
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
