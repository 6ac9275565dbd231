/** A disk that a test can fill: a small tmpfs, if this user may mount one. */
import { execFile } from 'node:child_process'
import { rm, stat, statfs, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { inject } from 'vitest'
import { makeTempDir } from './temp.ts'

const run = promisify(execFile)

export interface SmallDisk {
  /** An empty directory on the disk, owned by the user of PostgreSQL. */
  path: string
  /** Fills the disk. */
  fill(): Promise<void>
  empty(): Promise<void>
  unmount(): Promise<void>
}

/** Null when this user may not mount a disk. */
export async function mountSmallDisk(): Promise<SmallDisk | null> {
  const path = await makeTempDir('disk')
  const { uid, gid } = await stat(inject('databaseServer').dataDir)
  try {
    await run('mount', ['-t', 'tmpfs', '-o', `size=2m,mode=755,uid=${uid},gid=${gid}`, 'tmpfs', path])
  } catch {
    return null
  }
  // Outside the directory: PostgreSQL requires that it is empty.
  const ballast = join(path, 'ballast')
  const directory = join(path, 'tablespace')
  await run('install', ['-d', '-m', '700', '-o', String(uid), '-g', String(gid), directory])
  return {
    path: directory,
    async fill() {
      const { bavail, bsize } = await statfs(path)
      await writeFile(ballast, Buffer.alloc(bavail * bsize)).catch(error => {
        // A program has written to the disk meanwhile: now it is full too.
        if (error.code !== 'ENOSPC') throw error
      })
    },
    empty: () => rm(ballast),
    // Lazily: after a failed test, files may still be open, and the error to report is the test's.
    unmount: async () => void (await run('umount', ['--lazy', path])),
  }
}
