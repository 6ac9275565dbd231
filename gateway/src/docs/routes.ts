import { readFile } from 'node:fs/promises'
import type { Request, RequestHandler, Response } from 'express'
import { enUS } from '../locales/en-US.ts'
import { Asset, maxHeaderLength } from './assets.ts'
import { browserModules } from './browser-modules.ts'
import type { Html } from './html.ts'
import type { OpenApiDocument } from './openapi-document.ts'
import { pageText } from './page.ts'
import { referenceBody } from './reference-page.ts'
import { referenceEntries } from './search-index.ts'
import { signatureBody } from './signature-page.ts'

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

const openApi = new URL('../../openapi.json', import.meta.url)

/** The files that the gateway serves unsigned, by path. */
function allAssets(): Record<string, Asset> {
  return {
    '/openapi.json': new Asset('application/json', () => readFile(openApi)),
    '/docs/assets/docs.css': styleSheet(),
    '/docs/assets/icon.svg': fileAsset('image/svg+xml', 'browser/icon.svg'),
    '/docs/assets/theme.js': scriptAsset('browser/theme.ts'),
    '/docs/assets/search.json': new Asset(
      'application/json',
      async () => Buffer.from(JSON.stringify(referenceEntries(await readDocument()))),
      { headers },
    ),
    ...pageAssets('/docs', {
      title: 'API reference',
      description: 'All endpoints, with forms that send signed requests.',
      script: 'browser/reference.ts',
      body: async () => referenceBody(await readDocument()),
    }),
    ...pageAssets('/docs/signature', {
      title: 'Signature debugger',
      description: 'Finds the mistake in a wrong signature.',
      script: 'browser/signature.ts',
      body: async () => signatureBody(enUS.mistakes),
    }),
  }
}

async function readDocument(): Promise<OpenApiDocument> {
  return JSON.parse(await readFile(openApi, 'utf8')) as OpenApiDocument
}

/** The parts of the style sheet, in the order in which they apply. */
const styles = ['base', 'bar', 'code', 'choices', 'forms', 'reference', 'debugger']

function styleSheet(): Asset {
  const read = (name: string) => readFile(new URL(`browser/styles/${name}.css`, import.meta.url))
  return new Asset('text/css; charset=utf-8', async () => Buffer.concat(await Promise.all(styles.map(read))), {
    headers,
  })
}

/** A script without imports. */
function scriptAsset(path: string): Asset {
  const [code] = browserModules(new URL(path, import.meta.url)).values()
  return new Asset('text/javascript; charset=utf-8', async () => Buffer.from(code!), { headers })
}

function fileAsset(contentType: string, path: string): Asset {
  return new Asset(contentType, () => readFile(new URL(path, import.meta.url)), { headers })
}

type Page = { title: string; description: string; script: string; body: () => Promise<Html> }

/** A page, with and without a slash at the end of its path, and the modules of its script. */
function pageAssets(path: string, { title, description, script, body }: Page): Record<string, Asset> {
  const modules = browserModules(new URL(script, import.meta.url))
  const read = async () =>
    Buffer.from(pageText({ path, title, description, modules: [...modules.keys()], body: await body() }))
  const page = new Asset('text/html; charset=utf-8', read, { headers })
  const scripts = [...modules].map(
    ([url, code]) =>
      [url, new Asset('text/javascript; charset=utf-8', async () => Buffer.from(code), { headers })] as const,
  )
  return { [path]: page, [`${path}/`]: page, ...Object.fromEntries(scripts) }
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
 * All files are prepared at once: rendering the pages takes some 100 ms, which would delay signed requests later.
 */
export function serveDocs(): RequestHandler {
  const assets = allAssets()
  for (const asset of Object.values(assets)) void asset.prepare()
  return async (request, response, next) => {
    const { path } = request.target
    if (request.method !== 'GET' && request.method !== 'HEAD') return next()
    if (path === '/' && prefersHtml(request)) return sendToDocs(request, response)
    const asset = Object.hasOwn(assets, path) ? assets[path] : undefined
    if (!asset) return next()
    await asset.send(request, response)
  }
}
