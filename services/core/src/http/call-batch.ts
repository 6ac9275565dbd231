import { type AnyTRPCRouter, callTRPCProcedure, getTRPCErrorFromUnknown, TRPCError } from '@trpc/server'
import { type BatchAnswer, type BatchCall, batchCallLimit, packBatch, unpackBatch } from '@workspace-wallet/contract'
import { z } from 'zod'
import { recordUnroutedCall } from '../trpc/call-log.ts'
import type { Context } from '../trpc/context.ts'
import { errorShape } from '../trpc/error-shape.ts'
import { isStream } from '../trpc/procedures.ts'

/**
 * Answers a batch of calls independently: a failed call does not affect the others, and one that takes long does not delay them.
 *
 * @param onPart called with the answers to some calls while others take longer
 * @returns the answers to the rest
 * @throws TRPCError BAD_REQUEST
 */
export async function answerBatch(
  router: AnyTRPCRouter,
  ctx: Context,
  body: Buffer,
  onPart: (part: Buffer) => void,
): Promise<Buffer> {
  const calls = parseBatch(body)
  const ready = new Map<number, BatchAnswer>()
  let inProgress = calls.length
  const sendPart = () => {
    if (inProgress === 0) return
    try {
      onPart(packBatch({ calls: [...ready.keys()], answers: [...ready.values()] }))
      ready.clear()
    } catch {
      // An answer that cannot be packed rejects the batch at the end.
    }
  }
  const finish = async (call: BatchCall, at: number) => {
    const answer = await answerCall(router, ctx, call)
    // After this turn of the event loop, so that calls that were posted together are answered together.
    if (ready.size === 0 && inProgress > 1) setImmediate(sendPart)
    ready.set(at, answer)
    inProgress--
  }
  await Promise.all(calls.map(finish))
  const rest = [...ready].toSorted(([a], [b]) => a - b)
  return packBatch(rest.map(([, answer]) => answer))
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
    const error = getTRPCErrorFromUnknown(cause)
    // tRPC has no code for this. Procedures that do not find an object also fail with NOT_FOUND, but with other messages.
    if (error.code === 'NOT_FOUND' && error.message.startsWith('No "'))
      recordUnroutedCall(context, { path, code: error.code })
    return { error: errorShape(error, path) }
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
