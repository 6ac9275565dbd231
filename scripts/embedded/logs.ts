/** The log files of an embedded installation: bounded at each start, and quoted when something does not start. */
import { open, rename, stat } from 'node:fs/promises'

const fullAtBytes = 10 * 1024 * 1024
const keptFiles = 3

/** Opens a log to write at its end; a full one becomes `….1`, its predecessor `….2`, and so on. */
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

export async function rotateLog(path: string): Promise<void> {
  if ((await sizeOf(path)) < fullAtBytes) return
  const name = (age: number) => (age === 0 ? path : `${path}.${age}`)
  for (let age = keptFiles - 1; age >= 0; age--) await rename(name(age), name(age + 1)).catch(ignoreMissing)
}

async function readTail(path: string, offset: number): Promise<string> {
  const longest = 16 * 1024
  const end = await sizeOf(path)
  const from = Math.max(offset, end - longest)
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
