/**
 * The projects of the tests: those of `system` use PostgreSQL, Redis or HAProxy; those of `unit` use none, so that they run
 * without any server. What a file imports decides, so there is no list to maintain.
 */
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { importsOf } from '../../tools/checks/imports.ts'

const root = join(import.meta.dirname, '../..')

/** Runs PostgreSQL, Redis and HAProxy. */
const serverStarter = 'cli/processes/guarded.ts'

/** `inject` reads what global.ts provides: the URLs of the servers. */
const injectImport = /^import \{[^}]*\binject\b[^}]*\} from 'vitest'/m

/**
 * True if a file, or any file that it imports, starts servers or uses those that global.ts starts.
 *
 * @param path relative to the root
 * @param read the text of a file; null if there is none
 */
export function needsServers(path: string, read: (path: string) => string | null = readText): boolean {
  const paths = new Set([path])
  for (const each of paths) {
    const text = read(each)
    if (each === serverStarter || (text && injectImport.test(text))) return true
    const imports = text ? importsOf({ path: each, text }) : []
    for (const { to, isPath, isType } of imports) if (isPath && !isType) paths.add(to)
  }
  return false
}

/**
 * Tests that also run on tables in another schema than `public`: of postings, holds, events, webhooks, lists, access and the verifier.
 * `npx vitest run --project buckets` runs them. Cores that are programs have two places there, of which the second one has the workspaces.
 */
const bucketTests = [
  'access/access-cache',
  'database/lists/lists',
  'events/queries',
  'holds/holds',
  'integrity/schedule/incremental',
  'integrity/verify/catalog/catalog',
  'integrity/verify/verify',
  'ledger/posting/two-cores',
  'ledger/store/change-holds',
  'ledger/store/write-transfers',
  'webhooks/leases',
].map(name => `services/core/src/${name}.test.ts`)

/** Tests of the whole service, whose workspaces are not at home there. */
const systemBucketTests = ['key-life', 'transfers', 'wallets', 'webhook-delivery'].map(name => `test/${name}.test.ts`)

/** The test files of the projects, relative to the root. */
export function testFiles(): { unit: string[]; system: string[]; buckets: string[] } {
  const files = globSync('{packages,services,gateway,cli,tools,test,examples}/**/*.test.ts', {
    cwd: root,
    // Those of PgBouncer have a configuration of their own.
    exclude: path => path.includes('node_modules') || path === 'test/pgbouncer',
  })
  const { unit = [], system = [] } = Object.groupBy(files, path => (needsServers(path) ? 'system' : 'unit'))
  return { unit, system, buckets: [...bucketTests, ...systemBucketTests] }
}

const texts = new Map<string, string | null>()

function readText(path: string): string | null {
  const known = texts.get(path)
  if (known !== undefined) return known
  let text: string | null = null
  try {
    text = readFileSync(join(root, path), 'utf8')
  } catch (error) {
    // Tests of the checks contain imports of files that do not exist.
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
  texts.set(path, text)
  return text
}
