import { isBuiltin } from 'node:module'
import { importsOf } from './imports.ts'
import type { Source } from './sources.ts'

/** The parts of a package.json that say what the files of its folder may import. `folder` is relative to the root. */
export type Manifest = {
  folder: string
  name: string
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

/**
 * Imports of packages that the package.json of the importing file does not declare. npm installs the packages of all
 * workspaces in one folder, so such an import works here, and fails where the package is installed alone. Tests run
 * only here, so they may also import what the root declares.
 */
export function undeclaredImports(sources: readonly Source[], manifests: readonly Manifest[]): string[] {
  const root = manifests.find(({ folder }) => folder === '.')!
  return sources.flatMap(source => {
    const manifest = manifestOf(source.path, manifests) ?? root
    const isTest = manifest === root || source.path.endsWith('.test.ts')
    const declared = new Set([
      manifest.name,
      ...Object.keys(manifest.dependencies ?? {}),
      ...(isTest ? Object.keys({ ...manifest.devDependencies, ...root.dependencies, ...root.devDependencies }) : []),
    ])
    return importsOf(source)
      .filter(({ isPath, specifier }) => !isPath && !isBuiltin(specifier) && !declared.has(packageOf(specifier)))
      .map(
        ({ from, specifier }) =>
          `${from} imports ${packageOf(specifier)}, which ${manifest.folder}/package.json does not declare`,
      )
  })
}

function manifestOf(path: string, manifests: readonly Manifest[]): Manifest | undefined {
  // The console is a workspace within that of the gateway.
  return manifests
    .filter(({ folder }) => path.startsWith(`${folder}/`))
    .reduce<Manifest | undefined>((found, each) => (found && found.folder > each.folder ? found : each), undefined)
}

/** "@trpc/server" of "@trpc/server/http". */
function packageOf(id: string): string {
  return id
    .split('/')
    .slice(0, id.startsWith('@') ? 2 : 1)
    .join('/')
}
