import { chmod, mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterAll } from 'vitest'

const directories: string[] = []

// Hooks run in reverse order. Imports come first, so that this one runs after those that stop programs.
afterAll(async () => {
  for (const path of directories) await rm(path, { recursive: true, force: true, maxRetries: 5 })
})

/** A new directory, which is removed after the tests of the file. */
export async function makeTempDir(name: string): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), `wallet-test-${name}-`))
  directories.push(path)
  // PostgreSQL may have to run as another user.
  await chmod(path, 0o755)
  return path
}
