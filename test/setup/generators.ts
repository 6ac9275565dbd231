import { execFile } from 'node:child_process'
import { hash } from 'node:crypto'
import { cp, mkdir, mkdtemp, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'

const source = join(import.meta.dirname, '../generators')
const cache = join(import.meta.dirname, '../../node_modules/.cache')

/** The packages of test/generators, each with its exact version. */
export async function generatorVersions(): Promise<Record<string, string>> {
  return JSON.parse(await readFile(join(source, 'package.json'), 'utf8')).dependencies
}

/**
 * A folder `node_modules` with the packages of test/generators, which are too large to be dependencies of the repository. They
 * are installed once, without install scripts, and again when their lock file has changed.
 */
export async function installGenerators(): Promise<string> {
  const lock = await readFile(join(source, 'package-lock.json'))
  const folder = join(cache, `generators-${hash('sha256', lock).slice(0, 16)}`)
  if (!(await exists(folder))) await install(folder)
  return join(folder, 'node_modules')
}

/** Several test files may install at the same time: the first one that is ready is used. */
async function install(folder: string): Promise<void> {
  await mkdir(cache, { recursive: true })
  const stage = await mkdtemp(`${folder}-`)
  try {
    await cp(source, stage, { recursive: true })
    const args = ['ci', '--ignore-scripts', '--prefer-offline', '--no-audit', '--no-fund', '--no-update-notifier']
    // Without the settings that `npm test` passes on, which are about the repository.
    const env = Object.fromEntries(Object.entries(process.env).filter(([name]) => !/^npm_(?!config_\/\/)/.test(name)))
    await promisify(execFile)('npm', args, { cwd: stage, env })
    await rename(stage, folder)
  } catch (error) {
    if (!(await exists(folder))) throw error
  } finally {
    await rm(stage, { recursive: true, force: true })
  }
}

function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
