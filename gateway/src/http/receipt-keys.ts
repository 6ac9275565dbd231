import type { CoreClient } from '@workspace-wallet/core-client'
import type { RequestHandler } from 'express'
import { Asset } from '../docs/assets.ts'

const path = '/.well-known/jwks.json'
/** A new key is published this long before it may sign: see docs/operations.md. Clients cache the response for five minutes. */
const lifetimeMs = 60_000
/** Pages of all origins may verify receipts. */
const headers = { 'Access-Control-Allow-Origin': '*' }

/**
 * Serves the public keys of receipts (RFC 7517), without authentication. Reads them from core at most once a minute. While core
 * is unavailable, it serves the keys that it read last.
 */
export function serveReceiptKeys(core: CoreClient): RequestHandler {
  let current: { text: string; asset: Asset } | undefined
  let readAtMs = -Infinity
  let reading: Promise<void> | undefined

  async function read(): Promise<void> {
    const text = JSON.stringify(await core.receipts.keys.query())
    readAtMs = performance.now()
    if (text === current?.text) return
    current = { text, asset: new Asset('application/jwk-set+json', async () => Buffer.from(text), { headers }) }
  }

  function refresh(): Promise<void> {
    reading ??= read().finally(() => {
      reading = undefined
    })
    return reading
  }

  return async (request, response, next) => {
    if (request.target.path !== path || (request.method !== 'GET' && request.method !== 'HEAD')) return next()
    if (performance.now() - readAtMs >= lifetimeMs)
      await refresh().catch(error => {
        if (!current) throw error
        readAtMs = performance.now()
      })
    await current!.asset.send(request, response)
  }
}
