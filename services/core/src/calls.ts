import { getTRPCErrorFromUnknown, TRPCError } from '@trpc/server'
import { appRouter } from './router.ts'
import type { Context } from './trpc.ts'

type Options = { ctx: Context; input: unknown }
type Result = { ok: true; data: unknown } | { ok: false; error: TRPCError }
type Middleware = (options: object) => Promise<Result>
type Definition = { type: string; meta: unknown; middlewares: Middleware[] }

/** By path. tRPC keeps what it calls in `_def`, and says nothing of it in its types. */
const procedures = new Map(Object.entries(appRouter._def.procedures as unknown as Record<string, { _def: Definition }>))

/**
 * Calls a procedure by its path, as tRPC itself would: through its middlewares, validators and resolver, in their order.
 * tRPC copies its options twice at each of them, which costs more than all that they do; see docs/decisions.
 *
 * @throws TRPCError
 */
export async function callProcedure(ctx: Context, path: string, type: string, rawInput: unknown): Promise<unknown> {
  const definition = procedures.get(path)?._def
  if (definition?.type !== type) throw new TRPCError({ code: 'NOT_FOUND', message: `there is no ${type} at ${path}` })
  const { meta, middlewares } = definition
  const getRawInput = async () => rawInput

  async function runFrom(index: number, { ctx, input }: Options): Promise<Result> {
    const next = (changed: Partial<Options> = {}) => runFrom(index + 1, { ctx, input, ...changed })
    try {
      return await middlewares[index]!({ ctx, input, getRawInput, meta, next, path, type, batchIndex: 0 })
    } catch (cause) {
      return { ok: false, error: getTRPCErrorFromUnknown(cause) }
    }
  }

  const result = await runFrom(0, { ctx, input: undefined })
  if (!result.ok) throw result.error
  if (isStream(result.data))
    throw new TRPCError({ code: 'BAD_REQUEST', message: `${path} answers in pieces: call it at /trpc` })
  return result.data
}

function isStream(data: unknown): boolean {
  return typeof data === 'object' && data !== null && Symbol.asyncIterator in data
}
