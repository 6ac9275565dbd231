import { readFileSync } from 'node:fs'
import { posix } from 'node:path'
import { lexer, type Tokens } from 'marked'
import { anchorOf, type LinkTo } from './markdown.ts'
import type { OpenApiDocument } from './openapi-document.ts'
import { operationsOf } from './operations.ts'

/** A page that is made of a Markdown file of the repository. */
export type SitePage = {
  /** The path of the file in the repository. */
  source: string
  /** The path of the page. The Markdown has `.md` after it. */
  path: string
  title: string
  /** The first sentence, for llms.txt and search engines. */
  summary: string
  group: string
  text: string
}

const repository = new URL('../../../', import.meta.url)

/** The files that clients of the API need, in the order in which the pages list them. Operators read theirs in the repository. */
const groups: Record<string, Record<string, string>> = {
  'Start here': {
    'docs/guides/README.md': '/docs/guides',
    'docs/guides/quick-start.md': '/docs/guides/quick-start',
    'docs/signing.md': '/docs/signing',
    'docs/guides/idempotency.md': '/docs/guides/idempotency',
    'docs/guides/errors.md': '/docs/guides/errors',
    'docs/guides/lists.md': '/docs/guides/lists',
    'docs/guides/events.md': '/docs/guides/events',
    'docs/guides/webhooks.md': '/docs/guides/webhooks',
    'docs/guides/testing.md': '/docs/guides/testing',
  },
  'Solve a problem': {
    'docs/guides/refunds.md': '/docs/guides/refunds',
    'docs/guides/holds.md': '/docs/guides/holds',
    'docs/guides/payouts.md': '/docs/guides/payouts',
    'docs/guides/exchange.md': '/docs/guides/exchange',
    'docs/guides/statements.md': '/docs/guides/statements',
    'docs/guides/receipts.md': '/docs/guides/receipts',
    'docs/guides/limits.md': '/docs/guides/limits',
    'docs/guides/generated-clients.md': '/docs/guides/generated-clients',
  },
  'Clients and examples': {
    'packages/client/README.md': '/docs/client',
    'examples/README.md': '/docs/examples',
    'examples/shop/README.md': '/docs/examples/shop',
    'examples/events-copy/README.md': '/docs/examples/events-copy',
  },
  'Look up': {
    'docs/errors.md': '/docs/errors',
    'docs/glossary.md': '/docs/glossary',
    'docs/specification.md': '/docs/specification',
    'docs/versioning.md': '/docs/versioning',
    'CHANGELOG.md': '/docs/changelog',
    'README.md': '/docs/overview',
  },
}

let pages: readonly SitePage[] | undefined

/** All pages, in the order of their list. They are read once. */
export function sitePages(): readonly SitePage[] {
  pages ??= Object.entries(groups).flatMap(([group, files]) =>
    Object.entries(files).map(([source, path]) => {
      const text = readFileSync(new URL(source, repository), 'utf8')
      return { source, path, group, text, ...titleOf(text) }
    }),
  )
  return pages
}

function titleOf(text: string): { title: string; summary: string } {
  const tokens = lexer(text)
  const heading = tokens.find(({ type }) => type === 'heading') as Tokens.Heading
  const isSentence = (token: (typeof tokens)[number]) =>
    token.type === 'paragraph' && !/^(Scopes?:|Generated|Format:)/.test((token as Tokens.Paragraph).text)
  const paragraph = tokens.find(isSentence) as Tokens.Paragraph | undefined
  const [summary = ''] = /^[\s\S]*?[.:](?=\s|$)/.exec(paragraph?.text ?? '') ?? [paragraph?.text ?? '']
  return { title: heading.text, summary: summary.replace(/:$/, '.') }
}

/**
 * What a link in a file of the repository leads to here.
 *
 * @param suffix `.md` for the Markdown, which machines read, or nothing for the page
 * @returns undefined for files that these pages do not have
 */
export function linksOf({ source }: Pick<SitePage, 'source'>, suffix: '' | '.md' = ''): LinkTo {
  return url => {
    if (/^[a-z]+:/i.test(url) || url.startsWith('#') || url.startsWith('/')) return url
    const [file = '', anchor] = url.split('#')
    const target = posix.join(posix.dirname(source), file)
    if (target === 'gateway/openapi.json') return '/openapi.json'
    if (target === 'docs/api.md')
      return suffix ? `/docs/api.md${anchored(anchor)}` : `/docs${anchored(anchor, operations())}`
    const path = sitePages().find(page => page.source === target)?.path
    return path && `${path}${suffix}${anchored(anchor)}`
  }
}

function anchored(anchor: string | undefined, names?: Map<string, string>): string {
  const name = anchor && (names?.get(anchor) ?? (names ? undefined : anchor))
  return name ? `#${name}` : ''
}

/** The operations by the anchors of their headings in docs/api.md. */
let operationIds: Map<string, string> | undefined
function operations(): Map<string, string> {
  if (operationIds) return operationIds
  const text = readFileSync(new URL('gateway/openapi.json', repository), 'utf8')
  const described = operationsOf(JSON.parse(text) as OpenApiDocument)
  operationIds = new Map(described.map(({ operation }) => [anchorOf(operation.summary), operation.operationId]))
  return operationIds
}

/** The Markdown of a page, with links to the Markdown of the others. */
export function markdownOf(page: Pick<SitePage, 'source' | 'text'>): string {
  const linkTo = linksOf(page, '.md')
  return page.text.replaceAll(/(?<!!)\[([^\]]*)\]\(([^)\s]+)\)/g, (_, label: string, url: string) => {
    const target = linkTo(url)
    return target === undefined ? label : `[${label}](${target})`
  })
}
