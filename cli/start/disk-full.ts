/** A full disk is behind many failures, and few of them say so. */
import { statfs } from 'node:fs/promises'

/** With less than this PostgreSQL does not start. */
const leastFreeBytes = 1024 * 1024

export class DiskFullError extends Error {
  constructor(directory: string, cause: Error) {
    super(`The disk that holds ${directory} is full: free some space. ${inOneLine(cause.message)}`, { cause })
  }
}

/** The error, or, when the disk that holds this directory is full, one that says so. */
export async function orDiskFull(error: Error, directory: string): Promise<Error> {
  if (error instanceof DiskFullError) return error
  const { code } = error as NodeJS.ErrnoException
  const isFull = code === 'ENOSPC' || (await freeBytes(directory)) < leastFreeBytes
  return isFull ? new DiskFullError(directory, error) : error
}

/** Of a message that quotes the end of a log: what happened, and the line of the log that says why. */
export function inOneLine(message: string): string {
  const [what, ...log] = message.split('\n')
  const why = log.findLast(line => /FATAL|PANIC/.test(line)) ?? log.at(-1)
  return why?.trim()
    ? `${what!.replace(/; the end of .*:$/, ':')} ${why.trim()}`
    : what!.replace(/; the end of .*:$/, '')
}

async function freeBytes(directory: string): Promise<number> {
  const found = await statfs(directory).catch(() => undefined)
  return found ? found.bavail * found.bsize : Number.POSITIVE_INFINITY
}
