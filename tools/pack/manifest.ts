import { readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'

export const root = fileURLToPath(new URL('../../', import.meta.url))

type Manifest = { name: string; version: string; description: string; dependencies?: Record<string, string> }

/** The package.json of a package of this repository. */
export async function readManifest(name: string): Promise<Manifest> {
  return JSON.parse(await readFile(join(root, 'packages', name, 'package.json'), 'utf8')) as Manifest
}

/**
 * Writes the package.json of a package for registries. The one in the repository is private and exports TypeScript, which
 * Node does not run under node_modules.
 *
 * @param entry its JavaScript file, which has its declarations next to it
 * @param node the versions of Node that it runs on
 */
export async function writeManifest(
  directory: string,
  { name, version, description }: Manifest,
  { entry, dependencies, node = '>=24' }: { entry: string; dependencies: Record<string, string>; node?: string },
): Promise<void> {
  const types = entry.replace(/\.js$/, '.d.ts')
  const manifest = {
    name,
    version,
    description,
    license: 'UNLICENSED',
    type: 'module',
    engines: { node },
    sideEffects: false,
    exports: { '.': { types, default: entry } },
    dependencies,
    publishConfig: { access: 'restricted' },
  }
  await writeFile(join(directory, 'package.json'), `${JSON.stringify(manifest, null, 2)}\n`)
}
