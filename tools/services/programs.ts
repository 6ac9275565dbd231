/**
 * Programs that tests and the benchmark need and npm does not bring: from the PATH, else, as root on Debian, from its
 * package.
 */
import { execFile } from 'node:child_process'
import { access, constants, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

/**
 * The path of the first of these programs that is there.
 *
 * @param names in order of preference
 * @param aptPackage Debian's package that brings one of them
 */
export async function findProgram(names: string[], aptPackage: string): Promise<string> {
  const found = await findOnPath(names)
  if (found) return found
  await install(aptPackage)
  const installed = await findOnPath(names)
  if (installed) return installed
  throw new Error(`${names.join(' or ')} is needed: install it (see README.md).`)
}

async function findOnPath(names: string[]): Promise<string | undefined> {
  // Debian keeps servers where only root's PATH looks.
  for (const directory of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin'])
    for (const name of names) {
      const path = join(directory, name)
      const isThere = await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
      if (isThere) return path
    }
  return undefined
}

/** Where we may: as root on a system with apt. Elsewhere the person has to. */
async function install(aptPackage: string): Promise<void> {
  if (process.getuid?.() !== 0 || !(await findOnPath(['apt-get']))) return
  console.error(`Installing ${aptPackage} …`)
  const allow = await keepServicesStopped()
  try {
    const options = ['-qq', '-o', 'DPkg::Lock::Timeout=120']
    await aptGet([...options, 'update'])
    await aptGet([...options, 'install', '-y', '--no-install-recommends', aptPackage])
  } catch (error) {
    throw new Error(`${aptPackage} could not be installed: install it (see README.md). ${(error as Error).message}`)
  } finally {
    await allow()
  }
}

async function aptGet(args: string[]): Promise<void> {
  await promisify(execFile)('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } })
}

/** A package would start a server of its own, on the usual port; this file is Debian's way to say no. */
async function keepServicesStopped(): Promise<() => Promise<void>> {
  const policy = '/usr/sbin/policy-rc.d'
  try {
    await writeFile(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return async () => {}
  }
  return () => rm(policy, { force: true })
}
