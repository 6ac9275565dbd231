import { readFile, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { errorTable } from '@workspace-wallet/core/contract'

/**
 * Pages that are made from the code: `npm run golden` writes them, `npm run check` fails when one is not what the code
 * says.
 */
const pages: Record<string, () => string> = {
  'docs/errors.md': errorPage,
}

function errorPage(): string {
  const rows = Object.entries(errorTable)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, { http, message, when }]) => `| ${code} | ${http} | ${message} | ${when} |`)
  return [
    '# Error codes',
    '',
    'Made from `services/core/contract/errors.ts` by `npm run golden`. Every failure has the envelope of section 2.1 of',
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
  const file = fileURLToPath(new URL(`../${path}`, import.meta.url))
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
