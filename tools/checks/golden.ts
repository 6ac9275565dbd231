import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { database } from '../../deploy/observability/dashboards/database.ts'
import { ledger } from '../../deploy/observability/dashboards/ledger.ts'
import { service } from '../../deploy/observability/dashboards/service.ts'
import { webhooks } from '../../deploy/observability/dashboards/webhooks.ts'
import { apiPage } from './api-page.ts'
import { clientRecords } from './client-records.ts'
import { configurationPage } from './configuration-page.ts'
import { errorPage } from './error-page.ts'
import { openApiDocument } from './openapi/document.ts'
import { postmanCollection } from './postman/collection.ts'
import { pythonRecords } from './python-records.ts'

/** Files that are generated from the code. `npm run golden` writes them; `npm run check` fails when one is out of date. */
const pages: Record<string, () => string> = {
  'deploy/observability/grafana/dashboards/database.json': () => jsonOf(database),
  'deploy/observability/grafana/dashboards/ledger.json': () => jsonOf(ledger),
  'deploy/observability/grafana/dashboards/service.json': () => jsonOf(service),
  'deploy/observability/grafana/dashboards/webhooks.json': () => jsonOf(webhooks),
  'docs/api.md': apiPage,
  'docs/configuration.md': configurationPage,
  'docs/errors.md': errorPage,
  'examples/postman/wallet.postman_collection.json': postmanCollection,
  'gateway/openapi.json': openApiDocument,
  'packages/client/src/records.ts': () => clientRecords(JSON.parse(openApiDocument())),
  'packages/python/src/workspace_wallet/records.py': () => pythonRecords(JSON.parse(openApiDocument())),
}

const jsonOf = (value: object) => `${JSON.stringify(value, null, 2)}\n`

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
