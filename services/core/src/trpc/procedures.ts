import { TRPCError } from '@trpc/server'
import { workspaceCall } from '@workspace-wallet/contract'
import { findWorkspaceOfKey } from '../access/queries.ts'
import { recordAnswer, requestIdOf } from './call-log.ts'
import type { Context } from './context.ts'
import { codeOf, toTRPCError } from './errors.ts'
import { t } from './init.ts'
import type { Role } from './service-token.ts'

/**
 * The base of all procedures. Its one middleware checks the role of the token against `meta.roles`, sets `ctx.actor`, logs
 * and counts the answer, and maps errors, including those of a streamed answer.
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

/** For deposits and withdrawals: the funding service and operators. */
export const fundingProcedure = procedureFor('admin', 'funding')

/** For calls on one workspace: gateways on behalf of an API key, and services. */
export const workspaceProcedure = onWorkspace('gateway', 'service')

/** Like `workspaceProcedure`, for reads; also for operators. */
export const workspaceReadProcedure = onWorkspace('gateway', 'service', 'admin')

/** Like `workspaceReadProcedure`, for one wallet; also for the funding service. */
export const walletReadProcedure = onWorkspace('gateway', 'service', 'funding', 'admin')

/** A gateway may name only the workspace of the API key that it acts for, so a confused gateway cannot reach another one. */
function onWorkspace(...roles: [Role, ...Role[]]) {
  return procedureFor(...roles)
    .input(workspaceCall)
    .use(async ({ ctx, input: { workspaceId, caller }, next }) => {
      if (ctx.token.role !== 'gateway') return next()
      const apiKey = caller.apiKey ?? ''
      if ((await findWorkspaceOfKey(ctx.core.reads, apiKey)) !== workspaceId)
        throw new TRPCError({
          code: 'FORBIDDEN',
          message: 'the API key does not belong to this workspace',
        })
      return next({ ctx: { actor: `key:${apiKey}` } })
    })
}

/** Whether a procedure streams its answer. */
export function isStream(data: unknown): data is AsyncIterable<unknown> {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data
}

/** Maps errors of a streamed answer, which do not pass through the middleware. */
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
    throw toTRPCError(error, core.log, call)
  }
}
