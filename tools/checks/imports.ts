import { globSync, readFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import type { Source } from './sources.ts'

export type Import = {
  /** The importing file, relative to the root. */
  from: string
  /** What the import says: a relative path or the name of a package. */
  specifier: string
  /** The imported file, relative to the root. For third-party packages and for `node:` modules, the specifier. */
  to: string
  isType: boolean
  isPath: boolean
}

const importPattern =
  /^\s*(?:import|export)\s+(type\s+)?(?:[\w*{}\s,$]+?\s+from\s+)?'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm

export function importsOf({ path, text }: Source): Import[] {
  return [...text.matchAll(importPattern)].map(([, type, target, dynamic]) => {
    const specifier = (target ?? dynamic)!
    const isPath = specifier.startsWith('.')
    const to = isPath ? join(dirname(path), specifier) : (ownModules.get(specifier) ?? specifier)
    return { from: path, specifier, to, isType: type !== undefined, isPath }
  })
}

type Manifest = { name: string; workspaces?: string[]; exports?: string | Record<string, string> }

/** The files that our packages export, relative to the root, by the names under which they are imported. */
const ownModules = readOwnModules()

function readOwnModules(): ReadonlyMap<string, string> {
  const root = fileURLToPath(new URL('../../', import.meta.url))
  const read = (folder: string): Manifest => JSON.parse(readFileSync(join(root, folder, 'package.json'), 'utf8'))
  const manifests = read('.').workspaces!.map(folder => join(folder, 'package.json'))
  const folders = globSync(manifests, { cwd: root }).map(dirname)
  return new Map(
    folders.flatMap(folder => {
      const { name, exports = {} } = read(folder)
      const files = typeof exports === 'string' ? { '.': exports } : exports
      return Object.entries(files).map(([subpath, file]) => [join(name, subpath), join(folder, file)] as const)
    }),
  )
}
