import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { type AnyTRPCRouter, getTRPCErrorFromUnknown, TRPCError } from '@trpc/server'
import { createHTTPHandler } from '@trpc/server/adapters/standalone'
import { batchByteLimit, batchPath, batchType, serialization } from '@workspace-wallet/contract'
import { isSchemaCurrent } from '../database/readiness.ts'
import type { Context, Core } from '../trpc/context.ts'
import { errorShape } from '../trpc/error-shape.ts'
import { readBody } from './body.ts'
import { answerBatch } from './call-batch.ts'
import { findToken, type TokenTable } from './tokens.ts'

const trpcPath = '/trpc/'

/**
 * Core's HTTP server: `/batch` for our own client, `/trpc` for any tRPC client and for streamed answers, `/healthz`,
 * `/readyz` and `/metrics`. Calls need a service token. The server is for internal networks only.
 */
export function createCoreServer(core: Core, router: AnyTRPCRouter, tokens: TokenTable): Server {
  const trpc = createHTTPHandler({
    router,
    basePath: trpcPath,
    maxBodySize: batchByteLimit,
    maxBatchSize: 100,
    createContext: ({ req }): Context => contextOf(req),
  })

  function contextOf(request: IncomingMessage): Context {
    const token = findToken(tokens, request.headers.authorization)
    if (!token) throw new TRPCError({ code: 'UNAUTHORIZED', message: 'a known service token is required' })
    return { core, token }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    if (path === batchPath && request.method === 'POST') {
      const context = contextOf(request)
      send(response, 200, await answerBatch(router, context, await readBody(request, batchByteLimit)), batchType)
    } else if (path.startsWith(trpcPath)) {
      // Checks the token before the body is read.
      contextOf(request)
      await trpc(request, response)
    } else if (path === '/metrics') {
      send(response, 200, await core.metrics.registry.metrics(), core.metrics.registry.contentType)
    } else if (path === '/healthz') {
      send(response, 200, '{"status":"ok"}')
    } else if (path === '/readyz') {
      const ready = !core.stopping.aborted && (await isSchemaCurrent(core.reads))
      send(response, ready ? 200 : 503, JSON.stringify({ status: ready ? 'ready' : 'not ready' }))
    } else {
      throw new TRPCError({ code: 'NOT_FOUND', message: `there is no ${request.method} ${path}` })
    }
  }

  return createServer({ keepAliveTimeout: 60_000, requestTimeout: 30_000 }, (request, response) => {
    answer(request, response).catch(cause => {
      const error = getTRPCErrorFromUnknown(cause)
      if (error.code === 'INTERNAL_SERVER_ERROR') core.log.error({ err: cause }, 'a request failed')
      if (response.headersSent) {
        response.destroy()
        return
      }
      // The error format of tRPC over HTTP.
      const shape = errorShape(error, undefined)
      send(response, shape.data.httpStatus, JSON.stringify({ error: serialization.serialize(shape) }))
    })
  })
}

function send(response: ServerResponse, status: number, body: string | Buffer, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
