import { type ErrorCode, errorTable } from '@workspace-wallet/contract'
import type { OpenApiDocument, Response } from './openapi-document.ts'
import { resolved } from './openapi-document.ts'
import { operationsOf } from './operations.ts'
import type { SitePage } from './site-pages.ts'

/** A page for each error code, as Markdown: what it means, what to do, and which operations return it. */
export function errorPages(document: OpenApiDocument): SitePage[] {
  return (Object.keys(errorTable) as ErrorCode[]).toSorted().map(code => {
    const { message, when } = errorTable[code]
    return {
      // Links are those of a file beside docs/errors.md.
      source: `docs/${code}.md`,
      path: `/docs/errors/${code}`,
      title: `${code} ${message}`,
      summary: when,
      group: 'Error codes',
      text: textOf(document, code),
    }
  })
}

function textOf(document: OpenApiDocument, code: ErrorCode): string {
  const { http, message, when } = errorTable[code]
  const all = operationsOf(document)
  const returning = all.filter(({ operation }) =>
    Object.values(operation.responses).some(response => codesOf(resolved<Response>(document, response)).includes(code)),
  )
  const operations =
    returning.length === all.length
      ? ['Every operation can return it.']
      : returning.map(({ operation }) => `- [${operation.summary}](/docs#${operation.operationId})`)
  const example = { success: false, code, message, data: null }
  return [
    `# ${code} ${message}`,
    `HTTP status ${http}. ${when}`,
    '## What to do',
    adviceOf(code, http),
    '## Which operations return it',
    ...(operations.length > 0 ? [operations.join('\n')] : ['No operation: only requests to other paths.']),
    '## The response',
    `\`\`\`json\n${JSON.stringify(example, null, 2)}\n\`\`\``,
    'With the header `X-LOCALE: en-US`, the response also has `detail`, a sentence that says what was wrong with this request.',
    'See also: [all codes](errors.md), [the guide to errors](guides/errors.md).',
    '',
  ].join('\n\n')
}

function codesOf({ content }: Response): string[] {
  return Object.keys(content?.['application/json']?.examples ?? {})
}

const retry = 'Nothing was done. Wait for the seconds in `Retry-After`, and send the request again with a new nonce.'
const other: Partial<Record<ErrorCode, string>> = {
  GA2012:
    'Do not retry. Enter the request in the [signature debugger](/docs/signature), which names the usual mistakes. See [Signing](signing.md).',
  GA2013:
    'Sign the request again with the current time and a new nonce; each nonce is accepted once. If it happens often, set the clock of your machine, for example with NTP.',
  GA2024:
    'Do not retry. Ask an operator for a key with the scope that the operation requires: the scopes of a key never change by themselves.',
  S002: retry,
  S029: retry,
  S003: 'Repeat the command with the same body and a new nonce. Its `bizId` prevents a second execution. See [Idempotency and retries](guides/idempotency.md).',
  S001: 'A command may or may not have been executed: repeat it with the same `bizId` to find out. Report the `X-Request-Id` of the response to the operator.',
  S012: 'Do not retry. `detail` names the field or parameter, and says what it must be.',
  T005: 'Do not retry. Choose another `bizId` for something new. To repeat a command, send all fields as they were.',
  T002: 'Do not retry as it is. [Get the balance](/docs#getWalletBalance): `available` is what can be spent. It works once the wallet has enough money.',
  T008: 'Do not retry as it is. An operator sets the limits: see [Limit what a key can spend](guides/limits.md).',
  E001: 'Make a new copy of your data: see [Events](guides/events.md).',
}

function adviceOf(code: ErrorCode, http: number): string {
  if (other[code]) return other[code]
  if (http === 404) return 'Do not retry. Check the ID, and that the key belongs to the workspace in which it exists.'
  if (http === 401 || http === 403) return 'Do not retry. Check the API key, or ask the operator of the service.'
  if (http === 409) return 'Do not retry as it is. Get the current state first: it is not what the command needs.'
  return 'Do not retry as it is: the same request fails again. Correct it first.'
}
