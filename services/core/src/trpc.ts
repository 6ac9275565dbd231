import type { KeyObject } from 'node:crypto'
import { initTRPC, TRPCError } from '@trpc/server'
import type { Pool } from 'pg'
import {
  accessPollMs,
  DomainError,
  type ErrorCode,
  errorTable,
  isDomainError,
  type KeyRing,
  Refusal,
  type RefusalCode,
  serialization,
  workspaceCall,
} from '../contract/index.ts'
import { assertKeyOfWorkspace } from './api-keys/queries.ts'
import type { Role, ServiceToken } from './config.ts'
import { classifyDatabaseError, retryConflicts } from './db/errors.ts'
import type { Em, Orm } from './db/orm.ts'
import type { Lanes } from './ledger/lanes.ts'
import type { Log } from './log.ts'
import type { Metrics } from './metrics.ts'
import type { Turns } from './turns.ts'

/** The parts that procedures work with. */
export type Core = {
  orm: Orm
  /**
   * Connections for short reads and for administration. Lists have their own, and turns at them for each workspace;
   * the ledger has its own: a slow list holds up neither money nor anybody else's reads.
   */
  reads: Pool
  lists: Pool
  listTurns: Turns
  lanes: Lanes
  keyRing: KeyRing
  /** Seals the ids of API keys (contract/key-ids.ts). */
  keySeal: string
  /** The key of the chain over all flows (see ledger/chain.ts). */
  chainKey: KeyObject
  log: Log
  metrics: Metrics
  /** Aborted when core begins to stop: what takes minutes ends then. */
  stopping: AbortSignal
  /** Answers what was taken, then closes every connection. */
  close(): Promise<void>
}

export type Context = { core: Core; token: Pick<ServiceToken, 'name' | 'role'> }

/** What an error carries over the wire beside tRPC's own fields: a public code with details, or an operator's sentence. */
export type WireError =
  | { kind: 'domain'; code: ErrorCode; details: unknown }
  | { kind: 'refusal'; code: RefusalCode; sentence: string }

const t = initTRPC
  .context<Context>()
  .meta<{ roles: readonly Role[] }>()
  .create({
    transformer: serialization,
    errorFormatter({ shape, error }) {
      const { stack: _, ...data } = shape.data
      return { ...shape, data: { ...data, wire: wireError(error.cause) } }
    },
  })

export const router = t.router

/** A procedure that these roles reach, and no others. The only way to make one: a test walks the router for strays. */
export function procedureFor(...roles: [Role, ...Role[]]) {
  return t.procedure.meta({ roles }).use(async ({ ctx, next, path, getRawInput }) => {
    const startedAt = performance.now()
    if (!roles.includes(ctx.token.role)) {
      recordAnswer(ctx, path, 'FORBIDDEN', startedAt, undefined)
      throw new TRPCError({ code: 'FORBIDDEN', message: `a ${ctx.token.role} token may not call ${path}` })
    }
    const result = await next()
    const requestId = requestIdOf(await getRawInput())
    if (result.ok) {
      recordAnswer(ctx, path, 'ok', startedAt, requestId)
      return result
    }
    const error = asTrpcError(result.error, ctx, path, requestId)
    recordAnswer(ctx, path, wireError(error.cause)?.code ?? error.code, startedAt, requestId)
    throw error
  })
}

/**
 * Calls that have no line of their own at the usual level: gateways ask for the first two several times a second, and
 * the last has one with its batch (ledger/batch-log.ts).
 */
const quiet = new Set(['access.changes', 'access.markUsed', 'transfers.create'])

const slowMs = 1_000

/** One line in the log and one count in the metrics for each call, under the request id that its caller gave. */
function recordAnswer(
  { core, token }: Context,
  path: string,
  code: string,
  startedAt: number,
  requestId: string | undefined,
): void {
  const milliseconds = performance.now() - startedAt
  core.metrics.answered(path, code, milliseconds)
  const isSlow = milliseconds >= slowMs
  const level = isSlow ? 'warn' : code === 'ok' && quiet.has(path) ? 'debug' : 'info'
  if (!core.log.isLevelEnabled(level)) return
  const line = { requestId, path, code, milliseconds: Math.round(milliseconds * 100) / 100, caller: token.name }
  core.log[level](line, isSlow ? 'a call took long' : 'a call was answered')
}

function requestIdOf(input: unknown): string | undefined {
  const { caller } = (input ?? {}) as { caller?: { requestId?: unknown } }
  return typeof caller?.requestId === 'string' ? caller.requestId.slice(0, 64) : undefined
}

/**
 * A procedure on one workspace's resources. Under a gateway token it acts for an API key, and only on the workspace
 * of that key: a gateway that is confused, or taken over, cannot name another one.
 */
export function workspaceProcedure(...roles: [Role, ...Role[]]) {
  return procedureFor(...roles).use(async ({ ctx, getRawInput, next }) => {
    if (ctx.token.role === 'gateway') {
      const { data, error } = workspaceCall.safeParse(await getRawInput())
      if (error) throw new TRPCError({ code: 'BAD_REQUEST', cause: error })
      await assertKeyOfWorkspace(ctx.core.reads, data.caller.apiKey ?? '', data.workspaceId)
    }
    return next()
  })
}

/** Who acts, as it is written into transfers and the audit. */
export function actorOf({ token }: Context, apiKey?: string): string {
  return token.role === 'gateway' ? `key:${apiKey}` : `${token.role}:${token.name}`
}

/** Runs an administrative act in one transaction, its audit row included; conflicts are run again. */
export function inTransaction<Result>(ctx: Context, act: (em: Em, actor: string) => Promise<Result>): Promise<Result> {
  return retryConflicts(() => ctx.core.orm.em.fork().transactional(em => act(em, actorOf(ctx))))
}

/**
 * An act that changes what keys may do. It answers when every gateway that is in health has heard of it, so that
 * whoever disables a key may rely on it from then on.
 */
export async function inAccessTransaction<Result>(
  ctx: Context,
  act: (em: Em, actor: string) => Promise<Result>,
): Promise<Result> {
  const result = await inTransaction(ctx, act)
  await new Promise(resolve => setTimeout(resolve, 3 * accessPollMs))
  return result
}

/** Reads a list: in its workspace's turn, on the connections for lists. */
export function readList<Result>(
  { core }: Context,
  workspaceId: string,
  read: (db: Pool) => Promise<Result>,
): Promise<Result> {
  return core.listTurns.take(workspaceId, () => read(core.lists))
}

function serviceUnavailable(): TRPCError {
  return new TRPCError({ code: 'SERVICE_UNAVAILABLE', cause: new DomainError('S002', { retryAfterSeconds: 1 }) })
}

function asTrpcError(error: TRPCError, ctx: Context, path: string, requestId?: string): TRPCError {
  const { cause } = error
  if (isDomainError(cause))
    return new TRPCError({
      code: trpcCodeByStatus[errorTable[cause.code].http],
      message: cause.message,
      cause,
    })
  if (cause instanceof Refusal)
    return new TRPCError({ code: cause.code === 'NOT_FOUND' ? 'NOT_FOUND' : 'CONFLICT', message: cause.message, cause })
  if (error.code === 'INTERNAL_SERVER_ERROR') {
    if (cause && classifyDatabaseError(cause) !== 'other') {
      ctx.core.log.warn({ err: cause, path, requestId }, 'the database could not be asked')
      return asTrpcError(serviceUnavailable(), ctx, path)
    }
    ctx.core.log.error({ err: cause ?? error, path, requestId }, 'a procedure failed')
    return new TRPCError({ code: 'INTERNAL_SERVER_ERROR', message: 'internal error; the log of core says more' })
  }
  return error
}

const trpcCodeByStatus = {
  400: 'BAD_REQUEST',
  401: 'UNAUTHORIZED',
  403: 'FORBIDDEN',
  404: 'NOT_FOUND',
  409: 'CONFLICT',
  413: 'PAYLOAD_TOO_LARGE',
  415: 'UNSUPPORTED_MEDIA_TYPE',
  422: 'UNPROCESSABLE_CONTENT',
  429: 'TOO_MANY_REQUESTS',
  500: 'INTERNAL_SERVER_ERROR',
  503: 'SERVICE_UNAVAILABLE',
  504: 'GATEWAY_TIMEOUT',
} as const satisfies Record<(typeof errorTable)[ErrorCode]['http'], TRPCError['code']>

function wireError(cause: unknown): WireError | undefined {
  if (isDomainError(cause)) return { kind: 'domain', code: cause.code, details: cause.details }
  if (cause instanceof Refusal) return { kind: 'refusal', code: cause.code, sentence: cause.message }
  return undefined
}
