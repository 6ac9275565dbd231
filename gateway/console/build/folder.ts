import { hash } from 'node:crypto'
import { glob, readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../../', import.meta.url))

/** Everything that a build is made of: the console, what it imports of this repository, and the versions of its packages. */
const sources = [
  'package-lock.json',
  'gateway/console/{index.html,package.json,vite.config.ts}',
  'gateway/console/src/**',
  'gateway/src/locales/**',
  'packages/contract/src/**',
]

/** The folder of the build of the current sources. It exists once they have been built: each state of them has its own. */
export async function consoleFolder(): Promise<string> {
  const files = await Array.fromAsync(glob(sources, { cwd: root, withFileTypes: true }))
  const paths = files.filter(file => file.isFile()).map(({ parentPath, name }) => join(parentPath, name))
  const digests = await Promise.all(
    paths.sort().map(async path => `${path.slice(root.length)} ${hash('sha256', await readFile(path))}\n`),
  )
  return join(root, 'gateway/console/dist', hash('sha256', digests.join('')).slice(0, 16))
}
