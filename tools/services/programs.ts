/** Finds programs that npm does not install: on the PATH, or, as root on Debian, by installing their package. */
import { execFile } from 'node:child_process'
import { access, constants, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { promisify } from 'node:util'

/**
 * The path of the first of these programs that is installed.
 *
 * @param names in order of preference
 * @param aptPackage the Debian package that contains one of them
 * @throws Error that says what to install
 */
export async function findProgram(names: string[], aptPackage: string): Promise<string> {
  const found = await findOnPath(names)
  if (found) return found
  await install(aptPackage)
  const installed = await findOnPath(names)
  if (installed) return installed
  throw new Error(`${names.join(' or ')} is not installed: install it (see README.md).`)
}

async function findOnPath(names: string[]): Promise<string | undefined> {
  // Debian installs servers in /usr/sbin, which only root has on the PATH.
  for (const directory of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin'])
    for (const name of names) {
      const path = join(directory, name)
      const isExecutable = await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
      if (isExecutable) return path
    }
  return undefined
}

/** Installs a package as root on a system with apt. Does nothing elsewhere. */
async function install(aptPackage: string): Promise<void> {
  if (process.getuid?.() !== 0 || !(await findOnPath(['apt-get']))) return
  console.error(`Installing ${aptPackage} …`)
  const allowServices = await preventServiceStarts()
  try {
    const options = ['-qq', '-o', 'DPkg::Lock::Timeout=120']
    await aptGet([...options, 'update'])
    await aptGet([...options, 'install', '-y', '--no-install-recommends', aptPackage])
  } catch (error) {
    throw new Error(`Cannot install ${aptPackage}: install it yourself (see README.md). ${(error as Error).message}`)
  } finally {
    await allowServices()
  }
}

async function aptGet(args: string[]): Promise<void> {
  await promisify(execFile)('apt-get', args, { env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' } })
}

/** Keeps the package from starting a server on its default port: Debian asks this file for permission. */
async function preventServiceStarts(): Promise<() => Promise<void>> {
  const policy = '/usr/sbin/policy-rc.d'
  try {
    await writeFile(policy, '#!/bin/sh\nexit 101\n', { mode: 0o755, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return async () => {}
  }
  return () => rm(policy, { force: true })
}
