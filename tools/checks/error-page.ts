import { errorTable } from '@workspace-wallet/contract'
import { table } from './markdown.ts'
import { expensiveReads } from './openapi/endpoint-errors.ts'

/** The text of docs/errors.md, generated from the error table. */
export function errorPage(): string {
  const rows = Object.entries(errorTable)
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([code, { http, message, when }]) => [code, String(http), message, when])
  return [
    '# Error codes',
    '',
    'Generated from `packages/contract/src/errors.ts` by `npm run golden`. Every failure has the envelope of section 2.1',
    'of the [specification](specification.md): `success` is false, `data` is null, and `message` is the symbolic name',
    'below, whatever the language. If the request sends `X-LOCALE` or `Accept-Language`, `detail` is a sentence that says',
    'what to fix, in the best matching language. The guide to [errors](guides/errors.md) has examples.',
    '',
    ...table(['Code', 'HTTP', 'Message', 'When'], rows),
    '',
    ...expensiveReads,
    '',
  ].join('\n')
}
