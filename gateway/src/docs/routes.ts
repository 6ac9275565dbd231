import { readFile } from 'node:fs/promises'
import type { RequestHandler } from 'express'
import { Asset } from './assets.ts'

/** What the gateway serves unsigned for readers of the API, by path. */
const assets: Record<string, Asset> = {
  '/openapi.json': fileAsset('application/json', '../../openapi.json'),
}

function fileAsset(contentType: string, path: string): Asset {
  return new Asset(contentType, () => readFile(new URL(path, import.meta.url)))
}

/** Serves the documentation. Other paths and methods are left to the next handler. */
export function serveDocs(): RequestHandler {
  return async (request, response, next) => {
    const { path } = request.target
    const asset = Object.hasOwn(assets, path) ? assets[path] : undefined
    if (!asset || (request.method !== 'GET' && request.method !== 'HEAD')) return next()
    await asset.send(request, response)
  }
}
