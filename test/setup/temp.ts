import { chmod, mkdtemp } from 'node:fs/promises'
import { join } from 'node:path'
import { inject } from 'vitest'

/** A new directory, which is removed at the end of the test run. */
export async function makeTempDir(name: string): Promise<string> {
  const path = await mkdtemp(join(inject('runDir'), `${name}-`))
  // PostgreSQL may have to run as another user.
  await chmod(path, 0o755)
  return path
}
