/** Finds programs that npm does not install: on the PATH, or, as root on Debian, by installing their packages. */
import { execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { access, constants, readFile, rm, writeFile } from 'node:fs/promises'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { promisify } from 'node:util'

export interface WantedProgram {
  /** In order of preference. */
  names: string[]
  /** The Debian package that contains one of them, or what it needs. */
  aptPackage: string
  /** Whether the program at a path is suitable, such as a Python that has a module. Default: every one is. */
  isSuitable?: (path: string) => Promise<boolean>
}

/**
 * The path of the first of these programs that is installed.
 *
 * @param names in order of preference
 * @param aptPackage the Debian package that contains one of them
 * @throws Error that says what to install
 */
export async function findProgram(names: string[], aptPackage: string): Promise<string> {
  const [path] = await findPrograms([{ names, aptPackage }])
  return path!
}

/**
 * The path of each of these programs, in order. Installs the packages of all missing ones in one go.
 *
 * @throws Error that says what to install
 */
export async function findPrograms(wanted: WantedProgram[]): Promise<string[]> {
  if ((await missingOf(wanted)).length > 0 && (await canInstall())) await oneAtATime(() => install(wanted))
  const missing = await missingOf(wanted)
  if (missing.length > 0) throw new Error(missing.map(howToInstall).join(' '))
  return (await Promise.all(wanted.map(findOnPath))) as string[]
}

async function missingOf(wanted: WantedProgram[]): Promise<WantedProgram[]> {
  const paths = await Promise.all(wanted.map(findOnPath))
  return wanted.filter((_, index) => !paths[index])
}

function howToInstall({ names, aptPackage }: WantedProgram): string {
  return `${names.join(' or ')} is not installed: install it, on Debian with "apt-get install ${aptPackage}" as root.`
}

async function findOnPath({
  names,
  isSuitable = async () => true,
}: Omit<WantedProgram, 'aptPackage'>): Promise<string | undefined> {
  // Debian installs servers in /usr/sbin, which only root has on the PATH.
  for (const directory of [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin'])
    for (const name of names) {
      const path = join(directory, name)
      const isExecutable = await access(path, constants.X_OK).then(
        () => true,
        () => false,
      )
      if (isExecutable && (await isSuitable(path))) return path
    }
  return undefined
}

async function canInstall(): Promise<boolean> {
  return process.getuid?.() === 0 && (await findOnPath({ names: ['apt-get'] })) !== undefined
}

/** Another process may have installed some of them in the meantime. */
async function install(wanted: WantedProgram[]): Promise<void> {
  const packages = (await missingOf(wanted)).map(({ aptPackage }) => aptPackage)
  if (packages.length === 0) return
  const startedAt = performance.now()
  console.error(`Installing ${packages.join(', ')} …`)
  const allowServices = await preventServiceStarts()
  try {
    await aptGet(['update'])
    await aptGet(['install', '-y', '--no-install-recommends', ...packages])
  } catch (error) {
    throw new Error(`Cannot install ${packages.join(', ')}: install it yourself (see README.md). ${causeOf(error)}`)
  } finally {
    await allowServices()
  }
  console.error(`Installed ${packages.join(', ')} in ${Math.round((performance.now() - startedAt) / 1000)} s.`)
}

/** Waits up to two minutes for another program that uses apt: DPkg::Lock::Timeout does not cover the lock of the lists. */
async function aptGet(args: string[]): Promise<void> {
  const env = { ...process.env, DEBIAN_FRONTEND: 'noninteractive', LC_ALL: 'C' }
  for (let attempt = 1; ; attempt++) {
    try {
      await promisify(execFile)('apt-get', ['-qq', '-o', 'DPkg::Lock::Timeout=120', ...args], { env })
      return
    } catch (error) {
      if (attempt === 120 || !causeOf(error).includes('Could not get lock')) throw error
      await sleep(1000)
    }
  }
}

function causeOf(error: unknown): string {
  return (error as Error).message
}

/**
 * Runs one installation at a time on this machine, whichever process starts it. `flock` holds the lock until its standard
 * input closes, so a killed process releases it too.
 */
async function oneAtATime(run: () => Promise<void>): Promise<void> {
  const holder = spawn('flock', ['/var/lib/apt', 'sh', '-c', 'echo locked && cat'], {
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  const closed = once(holder, 'close')
  await Promise.race([
    once(holder.stdout, 'data'),
    closed.then(() =>
      Promise.reject(new Error('Cannot lock /var/lib/apt with flock: check that util-linux is installed.')),
    ),
  ])
  try {
    await run()
  } finally {
    holder.stdin.end()
    await closed
  }
}

const policyFile = '/usr/sbin/policy-rc.d'
const denyAll = '#!/bin/sh\n# Written by cli/processes/programs.ts for the time of an installation.\nexit 101\n'

/** Keeps the packages from starting servers on their default ports: Debian asks this file for permission. */
async function preventServiceStarts(): Promise<() => Promise<void>> {
  try {
    await writeFile(policyFile, denyAll, { mode: 0o755, flag: 'wx' })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // The file of a killed installation is removed like one's own; that of the operator stays.
    if ((await readFile(policyFile, 'utf8')) !== denyAll) return async () => {}
  }
  return () => rm(policyFile, { force: true })
}
