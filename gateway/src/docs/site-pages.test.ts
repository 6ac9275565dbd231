import { readdir, readFile } from 'node:fs/promises'
import { errorTable } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { errorPages } from './error-pages.ts'
import { guideBody } from './guide-page.ts'
import { llmsText } from './llms.ts'
import { markdown } from './markdown.ts'
import type { OpenApiDocument } from './openapi-document.ts'
import { referenceBody } from './reference-page.ts'
import { searchIndex } from './search-index.ts'
import { markdownOf, sitePages } from './site-pages.ts'

const document = JSON.parse(await readFile(new URL('../../openapi.json', import.meta.url), 'utf8')) as OpenApiDocument
const pages = [...sitePages(), ...errorPages(document)]
const bodies = new Map([
  ...pages.map(page => [page.path, guideBody(page).html] as const),
  ['/docs', referenceBody(document).html],
])
const others = ['/openapi.json', '/docs/signature', '/docs/api.md']

/** Whether an address of this site has a page, and the page what the address names. */
function exists(url: string, page: string): boolean {
  const [path, anchor] = url.split('#')
  if (others.includes(path!)) return true
  const body = bodies.get(path === '' ? page : path!)
  return body !== undefined && (anchor === undefined || body.includes(` id="${anchor}"`))
}

const ownLinks = (text: string, pattern: RegExp) =>
  [...text.matchAll(pattern)].map(([, url]) => url!).filter(url => /^[/#]/.test(url))

test.each([...bodies.keys()])('%s: every link leads to a page, and to what it names there', path => {
  const links = ownLinks(bodies.get(path)!, / href="([^"]*)"/g)
  expect(links.length).toBeGreaterThan(5)
  expect(links.filter(url => !exists(url, path))).toEqual([])
})

test.each(pages)('$path.md: every link leads to a page', page => {
  const links = ownLinks(markdownOf(page), /\]\(([^)\s]+)\)/g)
  const served = new Set([...others, '/docs', ...pages.map(({ path }) => `${path}.md`)])
  expect(links.filter(url => !url.startsWith('#') && !served.has(url.split('#')[0]!))).toEqual([])
})

test('every guide is a page', async () => {
  const files = await readdir(new URL('../../../docs/guides', import.meta.url))
  const sources = sitePages().map(({ source }) => source)
  expect(files.map(name => `docs/guides/${name}`).filter(source => !sources.includes(source))).toEqual([])
})

test('every error code has a page, to which the codes in text and in the table of all codes link', () => {
  for (const code of Object.keys(errorTable)) {
    expect(bodies.get(`/docs/errors/${code}`)).toContain(`<h1 id=`)
    expect(bodies.get('/docs/errors')).toContain(`<a href="/docs/errors/${code}"><code>${code}</code></a>`)
  }
  expect(bodies.get('/docs/errors/T002')).toContain('href="/docs#createTransfer"')
  expect(bodies.get('/docs/errors/T002')).not.toContain('href="/docs#listWallets"')
  expect(bodies.get('/docs')).toContain('<a href="/docs/errors/T002"><code>T002</code></a>')
})

test('llms.txt names every page and operation', () => {
  const text = llmsText(document, pages)
  for (const { path } of pages) expect(text).toContain(`(${path}.md)`)
  for (const path of Object.keys(document.paths)) if (path.startsWith('/api/')) expect(text).toContain(path)
})

test('everything that the search finds exists', () => {
  const entries = searchIndex(document)
  expect(new Set(entries.map(({ kind }) => kind))).toEqual(new Set(['operation', 'field', 'event', 'error', 'guide']))
  expect(entries.filter(({ url }) => !exists(url, ''))).toEqual([])
})

test.each([
  ['<img src=x onerror=alert(1)>', '&lt;img'],
  ['a <b>c</b>', '&lt;b&gt;'],
  ['[x](javascript:alert(1))', '<p>x</p>'],
  ['[x](data:text/html,y)', '<p>x</p>'],
  ['`<i>`', '<code>&lt;i&gt;</code>'],
  ['```html\n<script>\n```', '&lt;script&gt;'],
  ['[a"b](/c"onclick=d)', '<p>a&quot;b</p>'],
])('markup in Markdown is text: %s', (text, expected) => {
  const html = markdown(text)
    .map(each => each.html)
    .join('')
  expect(html).toContain(expected)
  expect(html).not.toMatch(/<(img|b|i|script)\b|javascript:|data:/)
})
