import { randomUUID } from 'node:crypto'
import { TRPCError } from '@trpc/server'
import type { Scope } from '@workspace-wallet/contract'
import { runWithSpan } from '@workspace-wallet/runtime/tracing'
import { actorOfKey, actorOfOperator } from '../audit/actors.ts'
import { callingToken } from '../database/workspace-concurrency-limit.ts'
import { nameOfToken } from '../places/places.ts'
import { recordAnswer, requestIdOf } from './call-log.ts'
import { startCallSpan } from './call-span.ts'
import type { CallContext, Context, Core } from './context.ts'
import { codeOf, toTRPCError } from './errors.ts'
import { type Callers, t } from './init.ts'
import type { Role } from './service-token.ts'

/**
 * The base of all procedures. Its one middleware checks `meta`, sets `ctx.core`, `ctx.actor` and `ctx.requireScope`, logs and counts the
 * answer, and maps errors, including those of a streamed response. Each middleware takes 3 µs of a call (docs/measurements.md).
 */
const procedure = t.procedure.use(async ({ ctx, meta, path, signal, getRawInput, next }) => {
  const { core, token } = ctx
  const { callers, logLevel, hasOwnLimit = false } = meta ?? {}
  const startedAt = performance.now()
  const reject = (code: string) => recordAnswer(ctx, { path, requestId: undefined, startedAt, logLevel }, code)
  if (!callers?.roles.includes(token.role)) {
    reject('FORBIDDEN')
    throw new TRPCError({ code: 'FORBIDDEN', message: roleMessage(token.role, path, callers?.roles) })
  }
  const rawInput = await getRawInput().catch((error: unknown) => {
    reject('BAD_REQUEST')
    throw error
  })
  // Operators name none: theirs is in the log and the audit.
  const requestId = requestIdOf(rawInput) ?? `req_${randomUUID()}`
  const span = startCallSpan(ctx, callers, { path, requestId, rawInput })
  const call = { path, requestId, startedAt, logLevel, span }
  const fail = (thrown: unknown): never => {
    const error = toTRPCError(thrown, core, { path, requestId })
    recordAnswer(ctx, call, codeOf(error))
    throw error
  }
  const begin = async () => {
    const placed = ctx.places.all.length === 1 ? ctx : { ...ctx, core: await placeOf(ctx, callers, rawInput) }
    const caller = await identify(placed, callers, rawInput)
    const run = async () => next({ ctx: { core: placed.core, ...caller, requestId } })
    // Of the place, so that calls that wait for one place take nothing from those on others.
    const { viewerCalls, calls } = placed.core
    // Gateways name workspaces that `identify` has checked, and couriers those of webhooks.
    const namesFreely = token.role !== 'gateway' && token.role !== 'courier'
    const runForToken = () => (namesFreely ? callingToken.run(nameOfToken(token), run) : run())
    if (token.role === 'viewer') return viewerCalls.run(nameOfToken(token), runForToken)
    return hasOwnLimit ? runForToken() : calls.run(shareOf(placed, callers, rawInput), run)
  }
  const result = await (span ? runWithSpan(span, begin) : begin()).catch(fail)
  if (!result.ok) return fail(result.error)
  recordAnswer(ctx, call, 'ok')
  if (!isStream(result.data)) return result
  return { ...result, data: mapErrors(result.data, ctx, { path, requestId }, signal) }
})

function roleMessage(role: Role, path: string, allowed: readonly Role[] = []): string {
  return `a token of the role ${role} may not call ${path}: use a token of the role ${allowed.join(' or ')}`
}

/** The place of the workspace or API key that an input names, otherwise home. @throws as `Places.of` */
async function placeOf({ places, token }: Context, { isOfHome }: Callers, rawInput: unknown): Promise<Core> {
  if (isOfHome) return places.home
  const { workspaceId, apiKey } = (rawInput ?? {}) as { workspaceId?: unknown; apiKey?: unknown }
  if (typeof workspaceId === 'string') return places.of('workspace', workspaceId, token)
  if (typeof apiKey === 'string') return places.of('apiKey', apiKey, token)
  return places.home
}

/**
 * Who calls: the API key that a gateway acts for, otherwise the token. Core checks the key itself, so that a gateway, or whoever has
 * its token, can do no more than the key may.
 *
 * @throws DomainError if the key may not make the call (see `AccessCache.require`)
 * @throws TRPCError FORBIDDEN if a gateway names no key, or another workspace than that of the key
 */
async function identify({ core, token }: Context, { scope }: Callers, rawInput: unknown): Promise<Caller> {
  if (token.isOperator) return { actor: actorOfOperator(token.name), requireScope: allow }
  if (token.role !== 'gateway' || scope === null) return { actor: nameOfToken(token), requireScope: allow }
  // The input is parsed after this, by the procedure: `workspaceCall` and its other fields at once.
  const { workspaceId, caller } = (rawInput ?? {}) as WorkspaceInput
  const apiKey = caller?.apiKey
  if (typeof apiKey !== 'string') throw new TRPCError({ code: 'FORBIDDEN', message: 'a gateway must name an API key' })
  if ((await core.access.require(apiKey, scope)) !== workspaceId)
    throw new TRPCError({ code: 'FORBIDDEN', message: 'the API key does not belong to this workspace' })
  return {
    actor: actorOfKey(apiKey),
    requireScope: (also, index) => (also === scope ? allow() : core.access.require(apiKey, also, index)),
  }
}

/** Whose share of the calls a call takes: gateways act for workspaces, which `identify` has checked. */
function shareOf({ token }: Context, { scope }: Callers, rawInput: unknown): string {
  const share = nameOfToken(token)
  return token.role === 'gateway' && scope !== null ? `${share} ${(rawInput as WorkspaceInput).workspaceId}` : share
}

type WorkspaceInput = { workspaceId?: unknown; caller?: { apiKey?: unknown } | null }
type Caller = Pick<CallContext, 'actor' | 'requireScope'>

async function allow(): Promise<void> {}

function procedureFor(...roles: [Role, ...Role[]]) {
  return procedure.meta({ callers: { roles, scope: null } })
}

/** For what operators change. */
export const adminProcedure = procedureFor('admin')

/** For what operators read, also those who may only read. It must not change anything. */
export const operatorReadProcedure = procedureFor('admin', 'viewer')

/** For calls whose inputs name no workspace and no API key. */
function homeProcedureFor(...roles: [Role, ...Role[]]) {
  return procedure.meta({ callers: { roles, scope: null, isOfHome: true } })
}

/** Like `adminProcedure`. */
export const homeAdminProcedure = homeProcedureFor('admin')

/** Like `operatorReadProcedure`. */
export const homeReadProcedure = homeProcedureFor('admin', 'viewer')

/** For gateways, for themselves. */
export const gatewayProcedure = homeProcedureFor('gateway')

/** For couriers, which deliver webhooks. */
export const courierProcedure = homeProcedureFor('courier')

/** For the programs that report themselves. */
export const instanceProcedure = homeProcedureFor('gateway', 'courier')

/** For the public keys of receipts. */
export const publicKeyProcedure = homeProcedureFor('gateway', 'service', 'admin', 'viewer')

/** For deposits and withdrawals: the funding service and operators. */
export const fundingProcedure = procedureFor('admin', 'funding')

/** For reads of one workspace that have no endpoint. */
export const internalReadProcedure = procedureFor('service', 'admin', 'viewer')

/** For calls on one workspace, whose inputs extend `workspaceCall`: gateways for API keys with this scope, and services. */
export function workspaceProcedure(scope: Scope) {
  return onWorkspace(scope, 'gateway', 'service')
}

/** Like `workspaceProcedure`, also for operators. */
export function workspaceCommandProcedure(scope: Scope) {
  return onWorkspace(scope, 'gateway', 'service', 'admin')
}

/** Like `workspaceProcedure`, for reads; also for operators. */
export function workspaceReadProcedure(scope: Scope) {
  return onWorkspace(scope, 'gateway', 'service', 'admin', 'viewer')
}

/** Like `workspaceReadProcedure`, for one wallet; also for the funding service. */
export function walletReadProcedure(scope: Scope) {
  return onWorkspace(scope, 'gateway', 'service', 'funding', 'admin', 'viewer')
}

function onWorkspace(scope: Scope, ...roles: [Role, ...Role[]]) {
  return procedure.meta({ callers: { roles, scope } })
}

/** Whether a procedure streams its response. */
export function isStream(data: unknown): data is AsyncIterable<unknown> {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data
}

/** Maps errors of a streamed response, which do not pass through the middleware. */
async function* mapErrors(
  events: AsyncIterable<unknown>,
  { core }: Context,
  call: { path: string; requestId: string | undefined },
  caller: AbortSignal | undefined,
): AsyncGenerator<unknown, void> {
  try {
    yield* events
  } catch (error) {
    // The caller has disconnected or core stops: nobody receives the error.
    if (caller?.aborted || core.stopping.aborted) return
    throw toTRPCError(error, core, call)
  }
}
