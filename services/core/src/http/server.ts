import type { IncomingMessage, RequestListener, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { type AnyTRPCRouter, getTRPCErrorFromUnknown, TRPCError } from '@trpc/server'
import { createHTTPHandler } from '@trpc/server/adapters/standalone'
import { batchPath, batchProtocol, serialization } from '@workspace-wallet/contract'
import {
  acceptUpgrade,
  type Body,
  Counts,
  defaultConnectionLimit,
  hasBody,
  LimitedServer,
  refuseUpgrade,
  shareRuns,
  UnreadAnswers,
} from '@workspace-wallet/runtime'
import { createMetricsReader } from '@workspace-wallet/runtime/metrics-reader'
import { isSchemaCurrent } from '../database/readiness.ts'
import { nameOfToken } from '../places/places.ts'
import { recordUnroutedCall, warnSampled } from '../trpc/call-log.ts'
import type { Context, OpenedCore } from '../trpc/context.ts'
import { errorShape } from '../trpc/error-shape.ts'
import type { CallerToken } from '../trpc/service-token.ts'
import { answerBatch } from './call-batch.ts'
import { CallBodies } from './call-bodies.ts'
import { CallLink } from './call-link.ts'
import { authenticate, type TokenTable } from './tokens.ts'

const trpcPath = '/trpc/'
const trpcMethods = ['GET', 'HEAD', 'POST']
/** How long a call with a body may take that does not stream its response. */
const longestCallMs = 15_000
/** How often connections for batches are checked. */
const linkTickMs = 1_000
/** How many connections for batches a token may have. A gateway opens three; each can keep 200 KB that core has not read. */
const linkLimit = 1_024
/** Codes of requests and batches that are rejected before a procedure is chosen, by a fault of the caller. */
const malformed = new Set(['BAD_REQUEST', 'PAYLOAD_TOO_LARGE', 'UNSUPPORTED_MEDIA_TYPE', 'METHOD_NOT_SUPPORTED'])
const jsonPattern = /^application\/json[ \t]*(;|$)/i

/** `links`: the connections to `/batch`, which the server does not know any more. */
type CoreServer = { server: Server; links: ReadonlySet<CallLink> }

/**
 * Core's HTTP server: connections for batches at `/batch` for our own client, `/trpc` for any tRPC client and for streamed
 * responses, `/healthz`, `/readyz` and `/metrics`. Calls need a token of a service or an operator. The server is for internal
 * networks only.
 *
 * @param bodyMemoryBytes memory for the bodies of all calls until they are answered, and as much for answers until they are read
 */
export function createCoreServer(
  { places, registry }: Pick<OpenedCore, 'places' | 'registry'>,
  router: AnyTRPCRouter,
  { tokens, bodyMemoryBytes }: { tokens: TokenTable; bodyMemoryBytes: number },
): CoreServer {
  const core = places.home
  const bodies = new CallBodies(bodyMemoryBytes)
  core.metrics.watchBodies(bodies)
  // Without a token, anybody on the network may ask for these, and both read from the database.
  const readMetrics = createMetricsReader(registry)
  const readReadiness = shareRuns(async () => !core.stopping.aborted && (await isSchemaCurrent(core.reads)))
  const createHandler = (maxBatchSize: number) =>
    createHTTPHandler({
      router,
      basePath: trpcPath,
      maxBatchSize,
      createContext: ({ req }): Context => contexts.get(req)!,
      onError({ error: { code }, req, path, type }) {
        const hasNoProcedure = path === undefined || type === 'unknown' || code === 'METHOD_NOT_SUPPORTED'
        if (hasNoProcedure) recordUnroutedCall(contexts.get(req)!, { path: path ?? pathOf(req), code })
      },
    })
  const [answerOne, answerMany] = [createHandler(1), createHandler(100)]
  const trpc: RequestListener = (request, response) => {
    const { accept, 'trpc-accept': trpcAccept } = request.headers
    // tRPC keeps all answers of a stream that its caller does not read, where nobody counts them. It takes fewer headers for a stream.
    const mayStream = [accept, trpcAccept].some(types => types?.includes('application/jsonl'))
    return mayStream ? answerOne(request, response) : answerMany(request, response)
  }
  const contexts = new WeakMap<IncomingMessage, Context>()

  async function contextOf(request: IncomingMessage): Promise<Context> {
    const { traceparent } = request.headers
    const context = { places, core, token: await authenticate(core, tokens, request), traceparent }
    contexts.set(request, context)
    return context
  }

  /** Reads the body of a call. While it arrives, an operator may be disabled or get another token. */
  async function readBody(request: IncomingMessage, token: CallerToken): Promise<Body> {
    const body = await bodies.read(request, token)
    if (!token.isOperator) return body
    try {
      await contextOf(request)
      await bodies.anotherTurn(token, request.socket)
      return body
    } catch (error) {
      body.release()
      throw error
    }
  }

  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = request.url ?? ''
    if (path === batchPath) {
      await contextOf(request)
      const message = `${batchPath} needs the header Upgrade: ${batchProtocol}`
      throw new TRPCError({ code: 'BAD_REQUEST', message })
    } else if (path.startsWith(trpcPath)) {
      const { token } = await contextOf(request)
      if (!trpcMethods.includes(request.method ?? '')) {
        response.setHeader('allow', trpcMethods.join(', '))
        throw new TRPCError({ code: 'METHOD_NOT_SUPPORTED', message: `${trpcPath} has no ${request.method}` })
      }
      // tRPC would not learn that its caller has disconnected meanwhile, and stream for nobody.
      if (response.destroyed) return
      if (hasBody(request)) await answerWithBody(request, response, token)
      else {
        await bodies.turn(token, request.socket)
        if (!response.destroyed) trpc(request, response)
      }
    } else if (path === '/metrics') {
      const { bytes, type } = await readMetrics(request.headers.accept)
      send(response, 200, bytes, type)
    } else if (path === '/healthz') {
      send(response, 200, '{"status":"ok"}')
    } else if (path === '/readyz') {
      const ready = await readReadiness()
      send(response, ready ? 200 : 503, JSON.stringify({ status: ready ? 'ready' : 'not ready' }))
    } else {
      throw new TRPCError({ code: 'NOT_FOUND', message: `there is no ${request.method} ${path}` })
    }
  }

  /** Answers calls of tRPC whose input is in the body. */
  async function answerWithBody(
    request: IncomingMessage,
    response: ServerResponse,
    token: Context['token'],
  ): Promise<void> {
    // tRPC also reads forms, which have values that nobody counts.
    if (!jsonPattern.test(request.headers['content-type'] ?? ''))
      throw new TRPCError({ code: 'UNSUPPORTED_MEDIA_TYPE', message: 'a call must be application/json' })
    const body = await readBody(request, token)
    if (response.destroyed) return body.release()
    response.once('close', () => {
      // tRPC does not say when the calls of a caller have ended that has disconnected.
      if (response.writableFinished) body.release()
      else setTimeout(body.release, longestCallMs).unref()
    })
    // tRPC takes a body that was read before from here.
    trpc(Object.assign(request, { body: body.bytes.toString() }), response)
  }

  const links = new Set<CallLink>()
  const linkCounts = new Counts()

  /** Opens a connection for batches. @throws TRPCError */
  async function openLink(request: IncomingMessage, socket: Socket, head: Buffer): Promise<void> {
    const context = await contextOf(request)
    if (!socket.writable) return
    const { token } = context
    const sender = nameOfToken(token)
    if (linkCounts.of(sender) >= linkLimit)
      throw new TRPCError({
        code: 'SERVICE_UNAVAILABLE',
        message: `this token has ${linkLimit} connections to this core`,
      })
    linkCounts.add(sender)
    acceptUpgrade(socket, batchProtocol)
    const link = new CallLink(socket, head, {
      token,
      bodies,
      // Meanwhile, an operator may have been disabled or got another token.
      answer: async (body, onPart) => {
        if (!token.isOperator) return answerBatch(router, context, body, onPart)
        const current = await contextOf(request)
        await bodies.anotherTurn(token, link)
        return answerBatch(router, current, body, onPart)
      },
      rejectionOf: cause => Buffer.from(JSON.stringify(reject(cause, { context, path: batchPath }))),
    })
    links.add(link)
    socket.once('close', () => {
      links.delete(link)
      linkCounts.remove(sender)
    })
    unread.watch(socket, { sender: () => sender, weigh: () => link.waitingBytes })
    if (core.stopping.aborted) link.drain()
  }

  /** @param context of the caller, if its token is valid */
  function reject(
    cause: unknown,
    { context, path }: { context: Context | undefined; path: string },
  ): { status: number; error: unknown } {
    const error = getTRPCErrorFromUnknown(cause)
    if (error.code === 'INTERNAL_SERVER_ERROR') core.log.error({ err: cause }, 'a request failed')
    if (context && malformed.has(error.code)) recordUnroutedCall(context, { path, code: error.code })
    // The error format of tRPC over HTTP.
    const shape = errorShape(error, undefined)
    return { status: shape.data.httpStatus, error: serialization.serialize(shape) }
  }

  const handle: RequestListener = (request, response) => {
    // The console reads with GET. What it reads is for its operator only, and only now.
    response.setHeader('cache-control', 'no-store')
    answer(request, response).catch(cause => {
      const { status, error } = reject(cause, { context: contexts.get(request), path: pathOf(request) })
      if (response.headersSent) response.destroy()
      else send(response, status, JSON.stringify({ error }))
    })
  }
  const server = new LimitedServer(
    { connections: defaultConnectionLimit },
    { keepAliveTimeout: 60_000, requestTimeout: 30_000 },
    handle,
    {
      protocol: batchProtocol,
      path: batchPath,
      open: (request, socket, head) => {
        openLink(request, socket, head).catch(cause => {
          const { status, error } = reject(cause, { context: contexts.get(request), path: batchPath })
          refuseUpgrade(socket, status, JSON.stringify({ error }))
        })
      },
    },
  )
  const timer = setInterval(() => {
    for (const link of links) link.tick()
  }, linkTickMs).unref()
  server.once('close', () => clearInterval(timer))
  const unread = new UnreadAnswers(server, {
    limitBytes: bodyMemoryBytes,
    senderOf(request) {
      const context = contexts.get(request)
      return context ? nameOfToken(context.token) : 'without a token'
    },
    onClosed: caller =>
      warnSampled(core, `unread ${caller}`, { caller }, 'a connection was closed: its answers were not read'),
  })
  core.metrics.watchUnread(unread)
  return { server, links }
}

/** Without the query, which has inputs. */
function pathOf({ url = '' }: IncomingMessage): string {
  return url.split('?', 1)[0]!
}

function send(response: ServerResponse, status: number, body: string | Buffer, type = 'application/json'): void {
  response.writeHead(status, { 'content-type': type, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}
