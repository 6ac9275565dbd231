import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { errorTable } from '@workspace-wallet/contract'
import type { z } from 'zod'
import { gatewaySchema } from '../../gateway/src/config.ts'
import { coreSchema, migrationSchema } from '../../services/core/src/config.ts'
import { apiPage } from './api-page.ts'

/**
 * Pages that are made from the code: `npm run golden` writes them, `npm run check` fails when one is not what the code
 * says.
 */
const pages: Record<string, () => string> = {
  'docs/api.md': apiPage,
  'docs/configuration.md': configurationPage,
  'docs/errors.md': errorPage,
}

function configurationPage(): string {
  const programs = { Core: coreSchema, 'The migration step': migrationSchema, 'The gateway': gatewaySchema }
  const sections = Object.entries(programs).flatMap(([program, schema]) => [
    `## ${program}`,
    '',
    '| Variable | Default | Meaning |',
    '| --- | --- | --- |',
    ...Object.entries(schema.shape).map(
      ([name, type]) => `| ${name} | ${defaultOf(type)} | ${type.description ?? ''} |`,
    ),
    '',
  ])
  return [
    '# Configuration',
    '',
    'Made from the configuration schemas by `npm run golden`. Programs read their environment once, at start, and name',
    'every fault at once. Any variable may be given as `NAME_FILE`, the path of a file that holds its value, as container',
    'secrets do. `npm start` sets what it must by itself: `npm start -- --help`.',
    '',
    ...sections,
  ].join('\n')
}

function defaultOf(type: z.ZodType): string {
  if (!type.isOptional()) return 'required'
  const value: unknown = type.safeParse(undefined).data
  if (value === undefined) return 'none'
  return Array.isArray(value) && value.length === 0 ? 'none' : String(value)
}

function errorPage(): string {
  const rows = Object.entries(errorTable)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, { http, message, when }]) => `| ${code} | ${http} | ${message} | ${when} |`)
  return [
    '# Error codes',
    '',
    'Made from `packages/contract/src/errors.ts` by `npm run golden`. Every failure has the envelope of section 2.1 of',
    'the specification: `success` false, `data` null, `message` the symbolic name below, in every language. A request',
    'that sends `X-LOCALE` gets a sentence in `detail` as well, in the best matching language.',
    '',
    '| Code | HTTP | Message | When |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
}

const isCheck = process.argv.includes('--check')
for (const [path, make] of Object.entries(pages)) {
  const file = fileURLToPath(new URL(`../../${path}`, import.meta.url))
  const wanted = make()
  if ((await readFile(file, 'utf8').catch(() => '')) === wanted) continue
  if (isCheck) {
    console.error(`${path} is not what the code says. Write it anew: npm run golden`)
    process.exitCode = 1
  } else {
    await writeFile(file, wanted)
    console.log(`Wrote ${path}.`)
  }
}
