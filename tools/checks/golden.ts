import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { apiPage } from './api-page.ts'
import { clientRecords } from './client-records.ts'
import { configurationPage } from './configuration-page.ts'
import { errorPage } from './error-page.ts'
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
