import { type AnyTRPCRouter, callTRPCProcedure, getTRPCErrorFromUnknown, TRPCError } from '@trpc/server'
import { type BatchAnswer, type BatchCall, batchCallLimit, packBatch, unpackBatch } from '@workspace-wallet/contract'
import { z } from 'zod'
import type { Context } from '../trpc/context.ts'
import { errorShape } from '../trpc/error-shape.ts'
import { isStream } from '../trpc/procedures.ts'

/** Answers a batch of calls independently: a failed call does not affect the others. @throws TRPCError BAD_REQUEST */
export async function answerBatch(router: AnyTRPCRouter, ctx: Context, body: Buffer): Promise<Buffer> {
  return packBatch(await Promise.all(parseBatch(body).map(call => answerCall(router, ctx, call))))
}

async function answerCall(router: AnyTRPCRouter, context: Context, given: BatchCall): Promise<BatchAnswer> {
  const { path, type, input, traceparent } = given
  try {
    const ctx = traceparent === undefined ? context : { ...context, traceparent }
    const getRawInput = async () => input
    // Without a signal: a call that has begun is finished even if its caller disconnects.
    const call = { router, ctx, path, type, getRawInput, signal: undefined, batchIndex: 0 }
    const data = await callTRPCProcedure(call)
    if (isStream(data))
      throw new TRPCError({ code: 'BAD_REQUEST', message: `${path} streams its answer: call it at /trpc` })
    return { data }
  } catch (cause) {
    return { error: errorShape(getTRPCErrorFromUnknown(cause), path) }
  }
}

const batch = z
  .array(
    z.object({
      path: z.string(),
      type: z.enum(['query', 'mutation']),
      input: z.unknown(),
      // A malformed one is ignored.
      traceparent: z.string().optional().catch(undefined),
    }),
  )
  .min(1)
  .max(batchCallLimit)

function parseBatch(body: Buffer): BatchCall[] {
  try {
    return batch.parse(unpackBatch(body))
  } catch {
    throw new TRPCError({ code: 'BAD_REQUEST', message: `a batch must be 1 to ${batchCallLimit} calls in MessagePack` })
  }
}
