import type { OpenApiDocument } from './openapi-document.ts'
import { operationsOf } from './operations.ts'
import { plainText } from './search-index.ts'
import type { SitePage } from './site-pages.ts'

/** The text of /llms.txt (https://llmstxt.org): what there is, and where its Markdown is. */
export function llmsText(document: OpenApiDocument, pages: readonly SitePage[]): string {
  const groups = Map.groupBy(pages, ({ group }) => group)
  const operations = operationsOf(document).map(
    ({ method, path, operation }) => `- ${method} ${path}: ${operation.summary}`,
  )
  return [
    `# ${document.info.title}`,
    `> ${plainText(document.info.description ?? '')}`,
    '## Reference\n\n- [OpenAPI 3.1](/openapi.json): every operation, event, field, status and error code\n- [API reference](/docs/api.md): the same as Markdown',
    ...[...groups].map(
      ([group, all]) =>
        `## ${group}\n\n${all.map(({ title, path, summary }) => `- [${title}](${path}.md): ${plainText(summary)}`).join('\n')}`,
    ),
    `## Operations\n\n${operations.join('\n')}`,
    '',
  ].join('\n\n')
}
