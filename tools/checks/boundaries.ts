import { type Import, importsOf } from './imports.ts'
import { isIn, isTest, type Source } from './sources.ts'

type Rule = { why: string; forbids: (imported: Import) => boolean }

const isPackage = (name: string, ...names: string[]) => names.some(each => name === each || name.startsWith(`${each}/`))
const isProduct = (path: string) => isIn(path, 'packages', 'services', 'gateway') && !isTest(path)

/** From bottom to top. A file may import its own layer and those below it. */
export const layers = [
  'packages/client',
  'packages/contract',
  'packages/runtime',
  'services/core',
  'packages/core-client',
  'services/courier',
  'gateway',
  'cli',
  'deploy',
  'tools/charts',
  'tools/bench',
  'tools/chaos',
  'tools/scale',
  'tools/pack',
  'tools/checks',
]

const layerOf = (path: string) => layers.findIndex(layer => isIn(path, layer))

/**
 * The folders of a folder, from bottom to top. A file may import its own folder and those below it. The files beside the folders
 * are above all of them.
 */
export const foldersOf: Record<string, readonly string[]> = {
  'services/core/src': [
    'database',
    'places',
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
    'moves',
    'keks',
    'refusals',
    'instances',
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
      !isIn(to, 'packages/contract'),
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
    why: 'only tests import test and examples',
    forbids: ({ from, to }) => !isTest(from) && !isIn(from, 'examples') && isIn(to, 'test', 'examples'),
  },
  {
    why: 'packages are imported by name',
    forbids: ({ from, to, isPath }) =>
      isProduct(from) && isPath && isIn(to, 'packages') && !isIn(from, to.split('/').slice(0, 2).join('/')),
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
        isPackage(to, 'pg', 'kysely', '@mikro-orm')),
  },
  {
    why: "the console knows of the gateway its error texts, and of core's client its types and what reads the streams of the ledger; the gateway serves what it is built into",
    forbids: ({ from, to, specifier, isType }) =>
      (isIn(from, 'gateway/src') && isIn(to, 'gateway/console')) ||
      (isIn(from, 'gateway/console') &&
        ((isIn(to, 'gateway/src') && specifier !== '@workspace-wallet/gateway/locales') ||
          (isIn(to, 'packages/core-client') &&
            !isType &&
            !/^@workspace-wallet\/core-client\/(checkpoint|ledger)$/.test(specifier)))),
  },
  {
    why: 'without a collector nothing of the SDK of OpenTelemetry is loaded: start-tracing.ts imports sdk.ts dynamically, and only sdk.ts the SDK',
    forbids: ({ from, to }) =>
      isProduct(from) &&
      from !== 'packages/runtime/src/tracing/sdk.ts' &&
      ((to.startsWith('@opentelemetry/') && to !== '@opentelemetry/api') ||
        (to === 'packages/runtime/src/tracing/sdk.ts' && from !== 'packages/runtime/src/tracing/start-tracing.ts')),
  },
  {
    why: 'core never sees the public HTTP API',
    forbids: ({ from, to }) =>
      isIn(from, 'services/core') && !isTest(from) && isPackage(to, 'express', 'http-proxy-middleware', 'redis'),
  },
  {
    why: 'SQL is written in queries, in the ledger and in database: procedures and operations call them',
    forbids: ({ from, to, isType }) =>
      (from.endsWith('/operations.ts') || (isIn(from, 'services/core/src/routers') && !isTest(from))) &&
      to === 'services/core/src/database/statement.ts' &&
      !isType,
  },
]

const opensServer = /\bcreate(Secure)?Server\b|\b(new|extends) (\w+\.)?Server\b|\bapp\.listen\(/

/** Violations of a file, besides its imports. */
function fileViolations({ path, text }: Source): string[] {
  const found: string[] = []
  if (layerOf(path) < 0 && path.includes('/') && !isTest(path) && !isIn(path, 'examples'))
    found.push(`${path} is in none of the layers: give its folder a place among them`)
  if (isProduct(path) && !path.endsWith('/config.ts') && text.includes('process.env'))
    found.push(`${path} reads process.env: only config.ts may read the environment`)
  if (isProduct(path) && path !== 'packages/runtime/src/limited-server.ts' && opensServer.test(text))
    found.push(`${path} opens a server of its own: use LimitedServer, which limits what clients can make it keep`)
  if (!isIn(path, 'tools/checks') && /\._def\b|\['_def'\]/.test(text))
    found.push(`${path} reads _def, which is not part of tRPC's public API`)
  return found
}

/** All imports that break a rule, and all files outside of the layers or with code that they may not contain. */
export function violations(sources: readonly Source[]): string[] {
  return sources.flatMap(source => [
    ...importsOf(source).flatMap(imported =>
      rules.filter(rule => rule.forbids(imported)).map(rule => `${imported.from} imports ${imported.to}: ${rule.why}`),
    ),
    ...fileViolations(source),
  ])
}
