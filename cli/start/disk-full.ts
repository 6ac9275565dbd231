/** Recognizes a full disk, which causes many failures whose messages do not say so. */
import { statfs } from 'node:fs/promises'

/** PostgreSQL does not start with less. */
const minFreeBytes = 1024 * 1024

export class DiskFullError extends Error {
  constructor(directory: string, cause: Error) {
    super(`The disk that holds ${directory} is full: free some space. ${inOneLine(cause.message)}`, { cause })
  }
}

/** A DiskFullError if the disk that holds this directory is full, else the error itself. */
export async function explainDiskFull(error: Error, directory: string): Promise<Error> {
  if (error instanceof DiskFullError) return error
  const { code } = error as NodeJS.ErrnoException
  const isFull = code === 'ENOSPC' || (await freeBytes(directory)) < minFreeBytes
  return isFull ? new DiskFullError(directory, error) : error
}

/** Shortens a message that quotes a log: its first line, and the line of the log that gives the reason. */
export function inOneLine(message: string): string {
  const [first, ...log] = message.split('\n')
  const reason = (log.findLast(line => /FATAL|PANIC/.test(line)) ?? log.at(-1))?.trim()
  const what = first!.replace(/; the end of .*:$/, '')
  return reason ? `${what}${what === first ? '' : ':'} ${reason}` : what
}

async function freeBytes(directory: string): Promise<number> {
  const found = await statfs(directory).catch(() => undefined)
  return found ? found.bavail * found.bsize : Number.POSITIVE_INFINITY
}
