import { randomBytes } from 'node:crypto'
import { readdir, readFile } from 'node:fs/promises'
import { extname, join } from 'node:path'
import type { RequestHandler } from 'express'
import { Asset } from '../docs/assets.ts'
import { mintRequestId } from '../http/envelope.ts'

const contentTypes: Record<string, string> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
}

const commonHeaders = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Resource-Policy': 'same-origin',
  'Permissions-Policy': 'camera=(), display-capture=(), geolocation=(), microphone=(), payment=(), usb=()',
  'Referrer-Policy': 'no-referrer',
  'X-Content-Type-Options': 'nosniff',
}

/**
 * Scripts and styles come from files of the console. Mantine also writes style elements, which carry the nonce. Text cannot become
 * markup: with Trusted Types, the console allows no HTML but style sheets (src/hardening.ts in gateway/console).
 */
function policyOf(nonce: string): string {
  return `default-src 'none'; script-src 'self'; style-src 'self' 'nonce-${nonce}'; img-src 'self' data:; font-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types default`
}

/** Stands in index.html where each response has its own nonce. */
const noncePlaceholder = '__NONCE__'

/**
 * Serves the console for operators at `/console`: one page for all paths below, and its files. It has no rights and sets no cookies:
 * the page sends the token that an operator enters with each call of core.
 *
 * @param folder what gateway/console was built into; all files are read at once
 */
export async function serveConsole(folder: string): Promise<RequestHandler> {
  const page = await readFile(join(folder, 'index.html'), 'utf8')
  const assets = await readAssets(folder)
  for (const asset of assets.values()) void asset.prepare()

  return async (request, response, next) => {
    const { path } = request
    if (request.method !== 'GET' && request.method !== 'HEAD') return next()
    if (path !== '/console' && !path.startsWith('/console/')) return next()
    request.requestId = mintRequestId()
    const asset = assets.get(path)
    if (asset) return asset.send(request, response)
    if (extname(path) !== '') return next()
    const nonce = randomBytes(16).toString('base64url')
    response.writeHead(200, {
      ...commonHeaders,
      'Content-Type': 'text/html; charset=utf-8',
      'Content-Security-Policy': policyOf(nonce),
      'Cache-Control': 'no-store',
      'X-Request-Id': request.requestId,
    })
    response.end(request.method === 'HEAD' ? undefined : page.replaceAll(noncePlaceholder, nonce))
  }
}

/** The files of a build besides its page, by URL path. The names of those in `assets` change with their content. */
async function readAssets(folder: string): Promise<Map<string, Asset>> {
  const assets = new Map<string, Asset>()
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    const contentType = contentTypes[extname(entry.name)]
    if (!entry.isFile() || !contentType) continue
    const file = join(entry.parentPath, entry.name)
    const content = await readFile(file)
    const path = file.slice(folder.length)
    const caching = path.startsWith('/assets/') ? 'public, max-age=31536000, immutable' : 'no-cache'
    const headers = { ...commonHeaders, 'Cache-Control': caching }
    assets.set(`/console${path}`, new Asset(contentType, async () => content, { headers }))
  }
  return assets
}
