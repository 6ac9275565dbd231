import { copyFile, rm } from 'node:fs/promises'
import { isBuiltin } from 'node:module'
import { dirname, join, relative, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Plugin, type RolldownOutput, rolldown } from 'rolldown'
import { dts } from 'rolldown-plugin-dts'
import { readManifest, root, writeManifest } from './manifest.ts'
import { compile } from './tsc.ts'

/** The handbook of the package becomes its README, with the pages that it links. */
const pages = { 'internal-client.md': 'README.md', 'roles.md': 'roles.md', 'errors.md': 'errors.md' }

/**
 * Builds packages/core-client: one JavaScript file and one declaration file, which include what they need of the contract,
 * of runtime and of core's types, and msgpackr.
 */
export async function buildCoreClient(directory: string): Promise<void> {
  const outputs = [await bundleCode(directory), await bundleDeclarations(directory)]
  const dependencies = await dependenciesOf(outputs.flatMap(importsOf))
  await writeManifest(directory, await readManifest('core-client'), { entry: './index.js', dependencies })
  for (const [page, name] of Object.entries(pages)) await copyFile(join(root, 'docs', page), join(directory, name))
  await copyFile(join(root, 'node_modules/msgpackr/LICENSE'), join(directory, 'LICENSE-msgpackr'))
}

const isOurs = (id: string) => /^(\.|\/|@workspace-wallet\/)/.test(id)

/**
 * Includes msgpackr: as a dependency, it would bring msgpackr-extract, which compiles code when it is installed. The entry for
 * browsers does not load it.
 */
async function bundleCode(directory: string): Promise<RolldownOutput> {
  const input = join(root, 'packages/core-client/src/index.ts')
  const alias = { msgpackr: join(root, 'node_modules/msgpackr/index.js') }
  const bundle = await rolldown({ input, resolve: { alias }, external: id => !isOurs(id) && !(id in alias) })
  return bundle.write({ dir: directory, entryFileNames: 'index.js', comments: { jsdoc: false } })
}

/**
 * Bundles what `tsc` declares, because callers of the package have none of our other packages. It includes the types of
 * @trpc/client that it uses: its other types need `lib.dom.d.ts`, which a service without a browser does not have.
 */
async function bundleDeclarations(directory: string): Promise<RolldownOutput> {
  const declared = join(directory, 'declared')
  await compile('core-client', declared)
  const bundle = await rolldown({
    input: join(declared, 'packages/core-client/src/index.d.ts'),
    external: id => !isOurs(id) && id !== '@trpc/client',
    plugins: [declarations(declared), dts({ dtsInput: true, generator: 'oxc', tsconfig: false })],
  })
  const output = await bundle.write({ dir: directory, entryFileNames: 'index.d.ts' })
  await rm(declared, { recursive: true })
  return output
}

/**
 * Resolves imports between declarations. The type of core's router mentions core's context, and with it MikroORM, pg and
 * pino. Callers do not use it: they get an empty object instead.
 */
function declarations(declared: string): Plugin {
  const context = join(declared, 'services/core/src/trpc/context.d.ts')
  return {
    name: 'declarations',
    resolveId(id, importer) {
      if (id.startsWith('@workspace-wallet/')) {
        const source = fileURLToPath(import.meta.resolve(id))
        return join(declared, relative(root, source).replace(/\.ts$/, '.d.ts'))
      }
      if (id === '@trpc/client') return join(root, 'node_modules/@trpc/client/dist/index.d.mts')
      if (!importer || !id.startsWith('.')) return null
      return resolve(dirname(importer), id.replace(/\.ts$/, '.d.ts').replace(/\.mjs$/, '.d.mts'))
    },
    load: id => (id === context ? 'export type Context = object' : null),
  }
}

/** The modules that the code or the declarations import, also as `import(…)` in a type. */
function importsOf({ output }: RolldownOutput): string[] {
  const code = output.map(chunk => (chunk.type === 'chunk' ? chunk.code : '')).join('\n')
  return [...code.matchAll(/(?:\bfrom |\bimport |\bimport\()["']([^"']+)["']/g)].map(([, id]) => id!)
}

/** The packages that the output imports, with the versions that the repository uses. */
async function dependenciesOf(imports: string[]): Promise<Record<string, string>> {
  const [client, contract] = await Promise.all([readManifest('core-client'), readManifest('contract')])
  const versions: Record<string, string> = { ...contract.dependencies, ...client.dependencies }
  const names = new Set(imports.filter(id => !isBuiltin(id)).map(packageOf))
  return Object.fromEntries([...names].sort().map(name => [name, versionOf(name)]))

  function versionOf(name: string): string {
    const version = versions[name]
    if (!version) throw new Error(`core-client imports ${name}: add it to the dependencies of core-client or contract.`)
    return version
  }
}

/** "@trpc/server" of "@trpc/server/observable". */
function packageOf(id: string): string {
  return id
    .split('/')
    .slice(0, id.startsWith('@') ? 2 : 1)
    .join('/')
}
