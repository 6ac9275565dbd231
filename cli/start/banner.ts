import { resolve } from 'node:path'
import { dataDirOf } from '../command-line/data-dir.ts'
import type { Demo } from './demo.ts'

type Pages = { docs: boolean; console: boolean }

/**
 * What `npm start` prints when everything is running. It contains the secret on the first start only.
 *
 * @param has whether the gateway serves the documentation and the console
 */
export function banner(demo: Demo, isNew: boolean, demoFile: string, dataDir: string, has: Pages): string {
  const variable = dataDir === resolve(dataDirOf({})) ? '' : `DATA_DIR=${quote(dataDir)} `
  return `
The wallet service is ready.

  Base URL    ${demo.baseUrl}
  API key     ${demo.apiKey}
  API secret  ${isNew ? `${demo.apiSecret} (also in the file below)` : 'in the file below'}
  Demo        ${demoFile}
  Data, logs  ${dataDir}
${has.docs ? `\nMake a signed transfer in the browser, with this key and secret: ${demo.baseUrl}/docs\n` : ''}${has.console ? `\nWatch and administer it in the browser, with the adminToken in the demo file: ${demo.consoleUrl}\n` : ''}
Make a signed call, in another terminal in this directory:

${variable}npm run call -- GET /api/v1/wallets

Ctrl-C stops everything and keeps the data.
`
}

function quote(text: string): string {
  return `'${text.replaceAll("'", "'\\''")}'`
}
