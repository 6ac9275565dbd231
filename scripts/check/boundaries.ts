import { dirname, relative, resolve } from 'node:path'

/** A source file of ours: its path from the root, and its text. */
export type Source = { path: string; text: string }

type Import = { from: string; to: string; isType: boolean }

/** What a part of the house may not import. Paths of ours are from the root, packages by name. */
type Rule = { why: string; forbids: (imported: Import) => boolean }

const isIn = (path: string, folder: string) => path.startsWith(`${folder}/`)
const isPackage = (name: string, ...names: string[]) => names.some(each => name === each || name.startsWith(`${each}/`))
const isTest = (path: string) => path.endsWith('.test.ts')
const isProduct = (path: string) => (isIn(path, 'services') || isIn(path, 'gateway')) && !isTest(path)

const rules: Rule[] = [
  {
    why: 'the gateway knows core by its contract and its client only',
    forbids: ({ from, to }) => isIn(from, 'gateway') && isProduct(from) && isIn(to, 'services'),
  },
  {
    why: "only gateway/src/core.ts imports core's router, and only its type",
    forbids: ({ from, to, isType }) =>
      isProduct(from) && to === '@workspace-wallet/core/router' && !(from === 'gateway/src/core.ts' && isType),
  },
  {
    why: 'the gateway never opens PostgreSQL',
    forbids: ({ from, to }) => isIn(from, 'gateway') && isPackage(to, 'pg', 'kysely', '@mikro-orm'),
  },
  {
    why: 'core never sees the public HTTP API',
    forbids: ({ from, to }) =>
      isIn(from, 'services/core') &&
      isProduct(from) &&
      (isIn(to, 'gateway') || isPackage(to, '@workspace-wallet/gateway', 'express', 'http-proxy-middleware', 'redis')),
  },
  {
    why: "the contract stands alone: it imports none of core's insides",
    forbids: ({ from, to }) => isIn(from, 'services/core/contract') && isProduct(from) && isOutside(from, to),
  },
  {
    why: "the client carries the type of core's router, and nothing else of core",
    forbids: ({ from, to, isType }) =>
      isIn(from, 'services/core/client') &&
      isProduct(from) &&
      isIn(to, 'services/core/src') &&
      !(isType && to === 'services/core/src/router.ts'),
  },
  {
    why: 'data flows down: queries and operations do not know procedures',
    forbids: ({ from, to }) =>
      /\/(queries|operations|entities)\.ts$/.test(from) &&
      (to.endsWith('/procedures.ts') || isIn(to, 'services/core/src/trpc')),
  },
  {
    why: 'SQL lives in queries, in the ledger and in db: procedures and operations call them',
    forbids: ({ from, to, isType }) =>
      /\/(procedures|operations)\.ts$/.test(from) && to === 'services/core/src/db/statement.ts' && !isType,
  },
  {
    why: 'the product does not import scripts, bench, chaos or test',
    forbids: ({ from, to }) =>
      isProduct(from) && ['scripts', 'bench', 'chaos', 'test', 'examples'].some(each => isIn(to, each)),
  },
]

function isOutside(from: string, to: string): boolean {
  return isIn(to, 'services') && !isIn(to, dirname(from))
}

/** Every import that breaks a rule, and every file that reads the environment, or tRPC's insides, where it should not. */
export function violations(sources: readonly Source[]): string[] {
  return sources.flatMap(source => [
    ...importsOf(source).flatMap(imported =>
      rules.filter(rule => rule.forbids(imported)).map(rule => `${imported.from} imports ${imported.to}: ${rule.why}`),
    ),
    ...(isProduct(source.path) && !source.path.endsWith('/config.ts') && source.text.includes('process.env')
      ? [`${source.path} reads process.env: the environment is read in config.ts alone`]
      : []),
    ...(!isIn(source.path, 'scripts/check') && /\._def\b|\['_def'\]/.test(source.text)
      ? [`${source.path} reads _def: what tRPC keeps there is not its public API`]
      : []),
  ])
}

const importPattern =
  /^\s*(?:import|export)\s+(type\s+)?(?:[\w*{}\s,$]+?\s+from\s+)?'([^']+)'|\bimport\(\s*'([^']+)'\s*\)/gm

export function importsOf({ path, text }: Source): Import[] {
  return [...text.matchAll(importPattern)].map(([, type, target, dynamic]) => {
    const to = (target ?? dynamic)!
    return { from: path, to: to.startsWith('.') ? fromRoot(path, to) : to, isType: type !== undefined }
  })
}

function fromRoot(path: string, target: string): string {
  return relative('/', resolve('/', dirname(path), target))
}
