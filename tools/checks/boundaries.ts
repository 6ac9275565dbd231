import { dirname, join } from 'node:path'
import type { Source } from './sources.ts'

type Import = { from: string; to: string; isType: boolean; isPath: boolean }

/** A rule about imports. Paths are relative to the root; third-party packages have their names. */
type Rule = { why: string; forbids: (imported: Import) => boolean }

const isIn = (path: string, ...folders: string[]) => folders.some(folder => path.startsWith(`${folder}/`))
const isPackage = (name: string, ...names: string[]) => names.some(each => name === each || name.startsWith(`${each}/`))
const isTest = (path: string) => path.endsWith('.test.ts') || isIn(path, 'test')
const isProduct = (path: string) => isIn(path, 'packages', 'services', 'gateway') && !isTest(path)

/** From bottom to top. A file may import its own layer and those below it. */
const layers = [
  'packages/client',
  'packages/contract',
  'packages/runtime',
  'services/core',
  'packages/core-client',
  'services/courier',
  'gateway',
  'cli',
  'deploy',
  'tools/bench',
  'tools/chaos',
  'tools/pack',
  'tools/checks',
]

const layerOf = (path: string) => layers.findIndex(layer => isIn(path, layer))

/**
 * The folders of a folder, from bottom to top. A file may import its own folder and those below it. The files beside the folders
 * are above all of them.
 */
const foldersOf: Record<string, readonly string[]> = {
  'services/core/src': [
    'database',
    'signing',
    'audit',
    'ledger',
    'metrics',
    'access',
    'holds',
    'wallets',
    'workspaces',
    'api-keys',
    'operators',
    'transfers',
    'limits',
    'receipts',
    'events',
    'webhooks',
    'keks',
    'refusals',
    'search',
    'integrity',
    'system',
    'trpc',
    'routers',
    'http',
  ],
  'services/core/src/ledger': ['chain', 'rows', 'decide', 'store', 'posting'],
  'gateway/src': ['core', 'locales', 'network', 'observability', 'api', 'auth', 'docs', 'http', 'internal'],
  cli: ['processes', 'command-line', 'start', 'admin', 'backup'],
}

/** The place of a path among the folders of `base`: from 0; above all for a file beside them; -1 for a folder without a place. */
function placeIn(base: string, path: string): number {
  const [folder, ...rest] = path.slice(base.length + 1).split('/')
  return rest.length === 0 ? Number.POSITIVE_INFINITY : foldersOf[base]!.indexOf(folder!)
}

function runsUpwards({ from, to }: Import): boolean {
  return Object.keys(foldersOf).some(base => {
    if (isTest(from) || !isIn(from, base)) return false
    const place = placeIn(base, from)
    return place < 0 || (isIn(to, base) && place < placeIn(base, to))
  })
}

/** What `decide` is made of: the same result for the same arguments, without input, output or a clock. */
const pureCode = [
  'services/core/src/ledger/decide',
  'services/core/src/ledger/chain/chain.ts',
  'services/core/src/ledger/chain/journal.ts',
  'services/core/src/ledger/chain/transfer.ts',
  'services/core/src/database/tables',
  'services/core/src/database/types.ts',
  'services/core/src/audit/actors.ts',
]
const isPure = (path: string) => pureCode.some(each => path === each || isIn(path, each))

const rules: Rule[] = [
  {
    why: 'imports go down the layers: client, contract, runtime, core, core-client, courier, gateway, cli, tools',
    forbids: ({ from, to }) => !isTest(from) && layerOf(from) >= 0 && layerOf(to) > layerOf(from),
  },
  {
    why: 'imports between the folders of core, of its ledger, of the gateway and of cli go down the order in boundaries.ts',
    forbids: runsUpwards,
  },
  {
    why: 'what decides has no input or output: it imports pure code, the contract and node:crypto; tables also declare entities',
    forbids: ({ from, to, isType }) =>
      isPure(from) &&
      !isTest(from) &&
      !isType &&
      !isPure(to) &&
      to !== 'node:crypto' &&
      !(isIn(from, 'services/core/src/database') && to === '@mikro-orm/core') &&
      to !== '@workspace-wallet/contract',
  },
  {
    why: 'only transport knows tRPC: domains hold operations, queries and entities',
    forbids: ({ from, to }) =>
      isIn(from, 'services/core/src') &&
      !isTest(from) &&
      !isIn(from, 'services/core/src/trpc', 'services/core/src/routers', 'services/core/src/http') &&
      isPackage(to, '@trpc'),
  },
  {
    why: 'only tests import test, and nothing imports examples',
    forbids: ({ from, to }) => (isIn(to, 'test') && !isTest(from)) || (isIn(to, 'examples') && !isIn(from, 'examples')),
  },
  {
    why: 'packages are imported by name',
    forbids: ({ from, to }) =>
      isProduct(from) && isIn(to, 'packages') && !isIn(from, to.split('/').slice(0, 2).join('/')),
  },
  {
    why: 'the contract, the console and the scripts of the documentation run in browsers: they import no node: module',
    forbids: ({ from, to }) =>
      isIn(from, 'packages/contract', 'gateway/console/src', 'gateway/src/docs/browser') &&
      !isTest(from) &&
      to.startsWith('node:'),
  },
  {
    why: 'the client of the public API runs in browsers and has no dependencies: it imports its own files only',
    forbids: ({ from, to }) => isIn(from, 'packages/client') && !isTest(from) && !isIn(to, 'packages/client'),
  },
  {
    why: "the client of core knows the type of core's router and nothing else of core",
    forbids: ({ from, to, isType }) =>
      isIn(from, 'packages/core-client') &&
      !isTest(from) &&
      isIn(to, 'services/core') &&
      !(isType && to === 'services/core/src/routers/app-router.ts'),
  },
  {
    why: 'the gateway and the courier know core by contract and client only, and never open PostgreSQL',
    forbids: ({ from, to }) =>
      isIn(from, 'gateway', 'services/courier') &&
      ((!isTest(from) && isIn(to, isIn(from, 'gateway') ? 'services' : 'services/core')) ||
        isPackage(to, 'pg', 'kysely', '@mikro-orm', '@workspace-wallet/core')),
  },
  {
    why: 'the console knows of the gateway its error texts, and of core the type of its router; the gateway serves what it is built into',
    forbids: ({ from, to, isType }) =>
      (isIn(from, 'gateway/src') && isIn(to, 'gateway/console')) ||
      (isIn(from, 'gateway/console') &&
        (isIn(to, 'gateway/src') ||
          (isPackage(to, '@workspace-wallet/gateway') && to !== '@workspace-wallet/gateway/locales') ||
          (isPackage(to, '@workspace-wallet/core-client') && !isType))),
  },
  {
    why: 'core never sees the public HTTP API',
    forbids: ({ from, to }) =>
      isIn(from, 'services/core') &&
      !isTest(from) &&
      isPackage(to, '@workspace-wallet/gateway', 'express', 'http-proxy-middleware', 'redis'),
  },
  {
    why: 'SQL is written in queries, in the ledger and in database: procedures and operations call them',
    forbids: ({ from, to, isType }) =>
      (from.endsWith('/operations.ts') || (isIn(from, 'services/core/src/routers') && !isTest(from))) &&
      to === 'services/core/src/database/statement.ts' &&
      !isType,
  },
]

/** Violations in the text of a file, besides its imports. */
function textViolations({ path, text }: Source): string[] {
  const found: string[] = []
  if (isProduct(path) && !path.endsWith('/config.ts') && text.includes('process.env'))
    found.push(`${path} reads process.env: only config.ts may read the environment`)
  if (!isIn(path, 'tools/checks') && /\._def\b|\['_def'\]/.test(text))
    found.push(`${path} reads _def, which is not part of tRPC's public API`)
  return found
}

/** All imports that break a rule, and all files that read the environment or tRPC's internals without being allowed to. */
export function violations(sources: readonly Source[]): string[] {
  return sources.flatMap(source => [
    ...importsOf(source).flatMap(imported =>
      rules.filter(rule => rule.forbids(imported)).map(rule => `${imported.from} imports ${imported.to}: ${rule.why}`),
    ),
    ...textViolations(source),
  ])
}

const importPattern =
  /^\s*(?:import|export)\s+(type\s+)?(?:[\w*{}\s,$]+?\s+from\s+)?'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm

export function importsOf({ path, text }: Source): Import[] {
  return [...text.matchAll(importPattern)].map(([, type, target, dynamic]) => {
    const to = (target ?? dynamic)!
    const isPath = to.startsWith('.')
    return { from: path, to: isPath ? join(dirname(path), to) : to, isType: type !== undefined, isPath }
  })
}

/**
 * Cycles of imports, each as `a -> b -> a`: between files, between folders without their subfolders, and at every depth between
 * folders with all that they contain. Tests may import anything.
 */
export function cycles(sources: readonly Source[]): string[] {
  const imports = sources
    .filter(({ path }) => !isTest(path) && !isIn(path, 'examples'))
    .flatMap(importsOf)
    .map(({ from, to }) => ({ from, to: fileOf(to) }))
  const files = graphOf(imports)
  const folders = graphOf(imports.map(({ from, to }) => ({ from: dirname(from), to: dirname(to) })))
  const found = [files, folders, wholeFoldersOf(imports)].flatMap(cyclesOf)
  return [...new Set(found)]
}

/** For each import, the two folders, or a folder and a file, at which the paths of both files part. */
function wholeFoldersOf(imports: readonly { from: string; to: string }[]): Graph {
  return graphOf(
    imports
      .filter(({ to }) => to.includes('/') && !to.startsWith('@') && !to.startsWith('node:'))
      .flatMap(({ from, to }) => {
        const [ofFrom, ofTo] = [from.split('/'), to.split('/')]
        const parting = ofFrom.findIndex((part, at) => part !== ofTo[at])
        // The layers order what the top folders contain.
        if (parting === 0) return []
        return { from: ofFrom.slice(0, parting + 1).join('/'), to: ofTo.slice(0, parting + 1).join('/') }
      }),
  )
}

/** The index file of one of our packages, or the path itself. */
function fileOf(target: string): string {
  return target.replace(/^@workspace-wallet\/(client|contract|runtime|core-client)$/, 'packages/$1/src/index.ts')
}

type Graph = ReadonlyMap<string, ReadonlySet<string>>

function graphOf(edges: readonly { from: string; to: string }[]): Graph {
  const graph = new Map<string, Set<string>>()
  for (const { from, to } of edges) {
    if (from === to) continue
    graph.set(from, (graph.get(from) ?? new Set()).add(to))
  }
  return graph
}

/** One shortest cycle through each node that is part of a cycle, without duplicates. */
function cyclesOf(graph: Graph): string[] {
  const found = new Map<string, string>()
  for (const start of graph.keys()) {
    const path = shortestPath(graph, start, start)
    const members = path?.slice(1).toSorted().join()
    if (path && members && !found.has(members)) found.set(members, path.join(' -> '))
  }
  return [...found.values()]
}

function shortestPath(graph: Graph, start: string, end: string): string[] | null {
  const paths = [[start]]
  const seen = new Set<string>()
  for (const path of paths)
    for (const next of graph.get(path.at(-1)!) ?? []) {
      if (next === end) return [...path, next]
      if (seen.has(next)) continue
      seen.add(next)
      paths.push([...path, next])
    }
  return null
}
