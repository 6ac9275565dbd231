import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http'
import { getTRPCErrorFromUnknown, getTRPCErrorShape, TRPCError } from '@trpc/server'
import { createHTTPHandler } from '@trpc/server/adapters/standalone'
import { z } from 'zod'
import {
  type FlightAnswer,
  type FlightCall,
  flightBytes,
  flightLimit,
  flightPath,
  flightType,
  packFlight,
  serialization,
  unpackFlight,
} from '../contract/index.ts'
import { callProcedure } from './calls.ts'
import { isSchemaCurrent } from './db/readiness.ts'
import { appRouter } from './router.ts'
import { findToken, type TokenTable } from './tokens.ts'
import type { Context, Core } from './trpc.ts'

const trpcPath = '/trpc/'

/**
 * Core's HTTP server: `/flight` for callers that send many calls at a time, `/trpc` for any tRPC client, `/healthz`,
 * `/readyz` and `/metrics`. Every call presents a service token; none of this is meant for the public.
 */
export function createCoreServer(core: Core, tokens: TokenTable): Server {
  const trpc = createHTTPHandler({
    router: appRouter,
    basePath: trpcPath,
    maxBodySize: flightBytes,
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
    if (path === flightPath && request.method === 'POST') {
      const context = contextOf(request)
      const answers = await fly(context, parseFlight(await readBody(request)))
      send(response, 200, packFlight(answers), flightType)
    } else if (path.startsWith(trpcPath)) {
      // Strangers are turned away before anything of theirs is read.
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
      throw new TRPCError({ code: 'NOT_FOUND', message: `nothing is served at ${request.method} ${path}` })
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
      // The shape that any tRPC client reads.
      const shape = errorShape(error)
      send(response, shape.data.httpStatus, JSON.stringify({ error: serialization.serialize(shape) }))
    })
  })
}

function fly(ctx: Context, calls: FlightCall[]): Promise<FlightAnswer[]> {
  return Promise.all(
    calls.map(async ({ path, type, input }): Promise<FlightAnswer> => {
      try {
        return { data: await callProcedure(ctx, path, type, input) }
      } catch (cause) {
        return { error: errorShape(getTRPCErrorFromUnknown(cause), path) }
      }
    }),
  )
}

function errorShape(error: TRPCError, path?: string) {
  const config = appRouter._def._config
  return getTRPCErrorShape({ config, error, type: 'unknown', path, input: undefined, ctx: undefined })
}

const flight = z
  .array(z.object({ path: z.string(), type: z.enum(['query', 'mutation']), input: z.unknown() }))
  .min(1)
  .max(flightLimit)

function parseFlight(body: Buffer): FlightCall[] {
  try {
    return flight.parse(unpackFlight(body))
  } catch {
    throw new TRPCError({ code: 'BAD_REQUEST', message: `a flight is 1 to ${flightLimit} calls in MessagePack` })
  }
}

async function readBody(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = []
  let length = 0
  try {
    for await (const chunk of request as AsyncIterable<Buffer>) {
      length += chunk.length
      if (length > flightBytes) throw new TRPCError({ code: 'PAYLOAD_TOO_LARGE' })
      chunks.push(chunk)
    }
  } catch (cause) {
    // A caller that went away in the middle is no fault of ours.
    throw cause instanceof TRPCError ? cause : new TRPCError({ code: 'CLIENT_CLOSED_REQUEST', cause })
  }
  return chunks.length === 1 ? chunks[0]! : Buffer.concat(chunks)
}

function send(response: ServerResponse, status: number, body: string | Buffer, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
