import { readFile } from 'node:fs/promises'
import type { Request, RequestHandler, Response } from 'express'
import { enUS } from '../locales/en-US.ts'
import { Asset, maxHeaderLength } from './assets.ts'
import { browserModules } from './browser-modules.ts'
import { errorPages } from './error-pages.ts'
import { guideBody } from './guide-page.ts'
import type { Html } from './html.ts'
import { llmsText } from './llms.ts'
import type { OpenApiDocument } from './openapi-document.ts'
import { pageText } from './page.ts'
import { referenceBody } from './reference-page.ts'
import { plainText, searchIndex } from './search-index.ts'
import { signatureBody } from './signature-page.ts'
import { markdownOf, type SitePage, sitePages } from './site-pages.ts'

/**
 * Headers of the pages and their assets. The pages handle a secret, so the policy allows nothing but their own files, and
 * requests to their own origin. They create no HTML from text, which Trusted Types enforce.
 */
const headers = {
  // A page and its modules must be of one version.
  'Cache-Control': 'no-cache',
  'Content-Security-Policy':
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'Referrer-Policy': 'no-referrer',
}

const repository = new URL('../../../', import.meta.url)
const openApi = new URL('gateway/openapi.json', repository)

/** The files that the gateway serves unsigned, by path. */
async function allAssets(): Promise<Record<string, Asset>> {
  const text = await readFile(openApi, 'utf8')
  const document = JSON.parse(text) as OpenApiDocument
  const pages = [...sitePages(), ...errorPages(document)]
  return {
    '/openapi.json': new Asset('application/json', async () => Buffer.from(text)),
    '/llms.txt': textAsset('text/plain', () => llmsText(document, pages)),
    '/docs/api.md': textAsset('text/markdown', () => apiMarkdown()),
    '/docs/assets/docs.css': styleSheet(),
    '/docs/assets/icon.svg': fileAsset('image/svg+xml', 'browser/icon.svg'),
    '/docs/assets/theme.js': scriptAsset('browser/theme.ts'),
    '/docs/assets/search.json': textAsset('application/json', () => JSON.stringify(searchIndex(document))),
    ...pageAssets({
      path: '/docs',
      title: 'API reference',
      description: 'All endpoints and events, with forms that send signed requests.',
      script: 'browser/reference.ts',
      markdown: '/docs/api.md',
      body: () => referenceBody(document),
    }),
    ...pageAssets({
      path: '/docs/signature',
      title: 'Signature debugger',
      description: 'Finds the mistake in a wrong signature.',
      script: 'browser/signature.ts',
      body: () => signatureBody(enUS.mistakes),
    }),
    ...Object.assign({}, ...pages.map(textPageAssets)),
  }
}

/** A page that is made of Markdown, and the Markdown. */
function textPageAssets(page: SitePage): Record<string, Asset> {
  const { path, title, summary } = page
  const markdown = `${path}.md`
  const body = () => guideBody(page)
  return {
    ...pageAssets({ path, title, description: plainText(summary), script: 'browser/guide.ts', markdown, body }),
    [markdown]: textAsset('text/markdown', () => markdownOf(page)),
  }
}

async function apiMarkdown(): Promise<string> {
  const source = 'docs/api.md'
  return markdownOf({ source, text: await readFile(new URL(source, repository), 'utf8') })
}

function textAsset(contentType: string, read: () => string | Promise<string>): Asset {
  return new Asset(`${contentType}; charset=utf-8`, async () => Buffer.from(await read()), { headers })
}

/** The parts of the style sheet, in the order in which they apply. */
const styles = ['base', 'bar', 'code', 'choices', 'forms', 'reference', 'text', 'debugger']

function styleSheet(): Asset {
  const read = (name: string) => readFile(new URL(`browser/styles/${name}.css`, import.meta.url))
  return new Asset('text/css; charset=utf-8', async () => Buffer.concat(await Promise.all(styles.map(read))), {
    headers,
  })
}

/** A script without imports. */
function scriptAsset(path: string): Asset {
  const [code] = browserModules(new URL(path, import.meta.url)).values()
  return textAsset('text/javascript', () => code!)
}

function fileAsset(contentType: string, path: string): Asset {
  return new Asset(contentType, () => readFile(new URL(path, import.meta.url)), { headers })
}

type Page = {
  path: string
  title: string
  description: string
  script: string
  /** The path of the same page as Markdown. */
  markdown?: string
  body: () => Html
}

/** A page, with and without a slash at the end of its path, and the modules of its script. */
function pageAssets({ path, title, description, script, markdown, body }: Page): Record<string, Asset> {
  const modules = modulesOf(script)
  const page = textAsset('text/html', () =>
    pageText({ path, title, description, modules: [...modules.keys()], body: body(), markdown }),
  )
  const scripts = [...modules].map(([url, code]) => [url, textAsset('text/javascript', () => code)] as const)
  return { [path]: page, [`${path}/`]: page, ...Object.fromEntries(scripts) }
}

/** Most pages have the same script. */
const scripts = new Map<string, Map<string, string>>()
function modulesOf(script: string): Map<string, string> {
  const modules = scripts.get(script) ?? browserModules(new URL(script, import.meta.url))
  scripts.set(script, modules)
  return modules
}

/** Whether a browser asks, and not a client of the API, which accepts JSON or anything. */
function prefersHtml(request: Request): boolean {
  if (String(request.headers.accept).length > maxHeaderLength) return false
  return request.accepts(['json', 'html']) === 'html'
}

function sendToDocs({ requestId }: Request, response: Response): void {
  response.writeHead(302, { ...headers, Location: '/docs', Vary: 'Accept', 'X-Request-Id': requestId }).end()
}

/**
 * Serves the documentation, and sends browsers from the base URL to it. Other paths and methods are left to the next handler.
 *
 * The larger files are prepared at once: rendering the reference takes some 100 ms, which would delay signed requests later.
 */
export function serveDocs(): RequestHandler {
  const prepared = prepareAssets()
  // A failure is that of the requests.
  prepared.catch(() => {})
  return async (request, response, next) => {
    const { path } = request.target
    if (request.method !== 'GET' && request.method !== 'HEAD') return next()
    if (path === '/' && prefersHtml(request)) return sendToDocs(request, response)
    if (!/^\/(docs|openapi\.json|llms\.txt)/.test(path)) return next()
    const assets = await prepared
    const asset = Object.hasOwn(assets, path) ? assets[path] : undefined
    if (!asset) return next()
    await asset.send(request, response)
  }
}

async function prepareAssets(): Promise<Record<string, Asset>> {
  const assets = await allAssets()
  const large = ['/docs', '/openapi.json', '/docs/assets/search.json', '/docs/assets/docs.css']
  for (const path of large) void assets[path]!.prepare()
  return assets
}
