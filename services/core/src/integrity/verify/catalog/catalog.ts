import type { LedgerRule } from '@workspace-wallet/contract'
import { inSchema } from '../../../database/schema.ts'
import type { Findings } from '../findings/findings.ts'
import { readAdditions } from './additions.ts'
import { digestOfBuiltins } from './builtins.ts'
import {
  expectedCitus,
  expectedOfShards,
  nameOfCitus,
  readCitusFunctions,
  readShardSuffixes,
  separateShards,
  summarizeCitus,
} from './citus.ts'
import { grantQueries, objectQueries, settingQueries } from './definitions.ts'
import expectedCatalog from './expected-catalog.json' with { type: 'json' }
import type { Reader } from './reader.ts'

/**
 * The definition of each object that the migration step creates, by the name of the object. Roles are called "owner" and
 * "service" here, whatever their names in this database are. In expected-catalog.json, the schema is `{schema}`.
 */
export type Catalog = Record<CatalogRule, Record<string, string>>
type CatalogRule = Extract<LedgerRule, keyof typeof expectedCatalog>

/**
 * Compares the definitions in the database with those that the migrations create (expected-catalog.json, written by
 * `npm run golden`). A policy, trigger, grant or setting can show the verification other rows than the service, so any
 * object that the migrations did not create is a violation, also if it belongs to an extension: whoever owns the extension
 * can add any object to it.
 *
 * @throws Error if an altered database makes a statement fail; what explains it has been added to the findings before
 */
export async function checkCatalog(snapshot: Reader, findings: Findings): Promise<void> {
  const compare = (rule: CatalogRule, expected: Record<string, string>, found: Record<string, string>) => {
    for (const object of [...new Set([...Object.keys(expected), ...Object.keys(found)])].sort()) {
      const message = differenceOf(expected[object], found[object])
      if (message) findings.add({ rule, message, ids: { object } })
    }
  }
  const expected: typeof expectedCatalog = JSON.parse(inSchema(JSON.stringify(expectedCatalog), snapshot.schema))
  const { [nameOfBuiltins]: digest, ...objects } = expected['database-object']
  const citus = await expectedCitus(snapshot)
  const builtins = { [nameOfBuiltins]: digest, ...(citus !== null && { [nameOfCitus]: citus }) }
  // First, because the other statements are built from them.
  compare('database-object', builtins, await readBuiltins(snapshot))
  const found = await readDefinitions(snapshot)
  const suffixes = await readShardSuffixes(snapshot)
  const citusFunctions = await readCitusFunctions(snapshot)
  for (const [rule, given] of [
    ['database-object', objects],
    ['database-grant', expected['database-grant']],
  ] as const) {
    const { tables, shards } = separateShards(found[rule], suffixes)
    for (const name of citusFunctions) delete tables[`everybody on function ${name}`]
    compare(rule, given, tables)
    if (suffixes.length > 0) compare(rule, expectedOfShards(given), shards)
  }
  compare('database-setting', expected['database-setting'], found['database-setting'])
}

export async function readCatalog(snapshot: Reader): Promise<Catalog> {
  const definitions = await readDefinitions(snapshot)
  const objects = { ...definitions['database-object'], ...(await readBuiltins(snapshot)) }
  return { ...definitions, 'database-object': objects }
}

const nameOfBuiltins = 'functions of PostgreSQL'

/** A digest of what PostgreSQL itself created, and what was added to it. */
async function readBuiltins(snapshot: Reader): Promise<Record<string, string>> {
  const additions = await summarizeCitus(snapshot, await readAdditions(snapshot))
  return { ...additions, [nameOfBuiltins]: await digestOfBuiltins(snapshot) }
}

async function readDefinitions(snapshot: Reader): Promise<Catalog> {
  const read = async (queries: string[]) => {
    const rows = []
    for (const sql of queries) rows.push(...(await snapshot.rows(sql)))
    return Object.fromEntries(rows.map(([object, definition]) => [object!, definition ?? '']))
  }
  return {
    'database-object': await read(objectQueries),
    'database-grant': await read(grantQueries),
    'database-setting': await read(settingQueries),
  }
}

function differenceOf(expected: string | undefined, found: string | undefined): string | null {
  if (expected === found) return null
  if (expected === undefined) return found ? `no migration created it: ${shortened(found)}` : 'no migration created it'
  if (found === undefined) return 'it is missing'
  return `it is "${shortened(found)}", expected "${shortened(expected)}"`
}

function shortened(text: string): string {
  const line = text.replaceAll(/\s+/g, ' ')
  return line.length > 300 ? `${line.slice(0, 300)}…` : line
}
