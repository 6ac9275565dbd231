import { TRPCError } from '@trpc/server'
import { workspaceCall } from '@workspace-wallet/contract'
import { findWorkspaceOfKey } from '../access/queries.ts'
import { recordAnswer, requestIdOf } from './call-log.ts'
import type { Context } from './context.ts'
import { codeOf, toTRPCError } from './errors.ts'
import { t } from './init.ts'
import type { Role } from './service-token.ts'

/**
 * Base procedures, named for their callers. All begin with one middleware, which admits the roles that `meta` names,
 * sets `ctx.actor`, records the answer and maps errors, those of a streamed answer included.
 */
const procedure = t.procedure.use(async ({ ctx, meta, path, signal, getRawInput, next }) => {
  const { core, token } = ctx
  const startedAt = performance.now()
  if (!meta?.roles.includes(token.role)) {
    recordAnswer(ctx, { path, requestId: undefined, startedAt }, 'FORBIDDEN')
    throw new TRPCError({ code: 'FORBIDDEN', message: `a ${token.role} token may not call ${path}` })
  }
  const result = await next({ ctx: { actor: `${token.role}:${token.name}` } })
  const requestId = requestIdOf(await getRawInput())
  if (!result.ok) {
    const error = toTRPCError(result.error, core.log, { path, requestId })
    recordAnswer(ctx, { path, requestId, startedAt }, codeOf(error))
    throw error
  }
  recordAnswer(ctx, { path, requestId, startedAt }, 'ok')
  if (!isStream(result.data)) return result
  return { ...result, data: mapErrors(result.data, ctx, { path, requestId }, signal) }
})

function procedureFor(...roles: [Role, ...Role[]]) {
  return procedure.meta({ roles })
}

/** For operators. */
export const adminProcedure = procedureFor('admin')

/** For gateways. */
export const gatewayProcedure = procedureFor('gateway')

/** Money that enters or leaves a workspace: for the one service that may, and operators. */
export const fundingProcedure = procedureFor('admin', 'funding')

/** For whoever acts on one workspace's resources: gateways, for an API key, and services. */
export const workspaceProcedure = onWorkspace('gateway', 'service')

/** The same for what only reads; operators may, too. */
export const workspaceReadProcedure = onWorkspace('gateway', 'service', 'admin')

/** What one wallet is and holds: also for whoever brings its money in or out. */
export const walletReadProcedure = onWorkspace('gateway', 'service', 'funding', 'admin')

/**
 * A gateway acts for an API key, and only on the workspace of that key: one that is confused, or taken over, cannot
 * name another one.
 */
function onWorkspace(...roles: [Role, ...Role[]]) {
  return procedureFor(...roles)
    .input(workspaceCall)
    .use(async ({ ctx, input: { workspaceId, caller }, next }) => {
      if (ctx.token.role !== 'gateway') return next()
      const apiKey = caller.apiKey ?? ''
      if ((await findWorkspaceOfKey(ctx.core.reads, apiKey)) !== workspaceId)
        throw new TRPCError({
          code: 'FORBIDDEN',
          message: 'the gateway acts for a key on a workspace that is not its own',
        })
      return next({ ctx: { actor: `key:${apiKey}` } })
    })
}

/** Whether a procedure streams its answer. */
export function isStream(data: unknown): data is AsyncIterable<unknown> {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data
}

/** What fails once an answer has begun no longer passes through the middleware. */
async function* mapErrors(
  events: AsyncIterable<unknown>,
  { core }: Context,
  call: { path: string; requestId: string | undefined },
  caller: AbortSignal | undefined,
): AsyncGenerator<unknown, void> {
  try {
    yield* events
  } catch (error) {
    // The caller has gone, or core stops: nobody is left to tell.
    if (caller?.aborted || core.stopping.aborted) return
    throw toTRPCError(error, core.log, call)
  }
}
