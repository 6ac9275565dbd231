import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { errorTable } from '@workspace-wallet/contract'
import type { z } from 'zod'
import { gatewaySchema } from '../../gateway/src/config.ts'
import { coreSchema, migrationSchema } from '../../services/core/src/config.ts'
import { courierSchema } from '../../services/courier/src/config.ts'
import { apiPage } from './api-page.ts'
import { clientRecords } from './client-records.ts'
import { openApiDocument } from './openapi/document.ts'
import { postmanCollection } from './postman/collection.ts'

/** Files that are generated from the code. `npm run golden` writes them; `npm run check` fails when one is out of date. */
const pages: Record<string, () => string> = {
  'docs/api.md': apiPage,
  'docs/configuration.md': configurationPage,
  'docs/errors.md': errorPage,
  'examples/postman/wallet.postman_collection.json': postmanCollection,
  'gateway/openapi.json': openApiDocument,
  'packages/client/src/records.ts': () => clientRecords(JSON.parse(openApiDocument())),
}

function configurationPage(): string {
  const programs = {
    Core: coreSchema,
    'The migration step': migrationSchema,
    'The gateway': gatewaySchema,
    'The courier': courierSchema,
  }
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
    'Generated from the configuration schemas by `npm run golden`. Programs read their environment once, at start, and',
    'report all missing and invalid variables together. Instead of a variable `NAME`, you can set `NAME_FILE` to the path',
    'of a file that holds the value, such as a container secret. `npm start` sets the required variables itself; see',
    '`npm start -- --help`.',
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
    'Generated from `packages/contract/src/errors.ts` by `npm run golden`. Every failure has the envelope of section 2.1',
    'of the [specification](specification.md): `success` is false, `data` is null, and `message` is the symbolic name',
    'below, whatever the language. If the request sends `X-LOCALE` or `Accept-Language`, `detail` is a sentence that says',
    'what to fix, in the best matching language. The guide to [errors](guides/errors.md) has examples.',
    '',
    '| Code | HTTP | Message | When |',
    '| --- | --- | --- | --- |',
    ...rows,
    '',
  ].join('\n')
}

const isCheck = process.argv.includes('--check')
for (const [path, generate] of Object.entries(pages)) {
  const file = fileURLToPath(new URL(`../../${path}`, import.meta.url))
  const expected = generate()
  if ((await readFile(file, 'utf8').catch(() => '')) === expected) continue
  if (isCheck) {
    console.error(`${path} is out of date. Regenerate it: npm run golden`)
    process.exitCode = 1
  } else {
    await writeFile(file, expected)
    console.log(`Wrote ${path}.`)
  }
}
