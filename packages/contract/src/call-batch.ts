import type { TRPCProcedureType } from '@trpc/server'
import { addExtension, Packr } from 'msgpackr'
import { Decimal, parseDecimal } from './money.ts'

/**
 * A batch carries many calls in one HTTP request, and their answers in its response: one request costs core and
 * caller far more than one call. `POST /batch`, both bodies in MessagePack: superjson, which `/trpc` speaks, takes
 * eight times as long over the same calls (see docs/decisions).
 */
export type BatchCall = { path: string; type: TRPCProcedureType; input: unknown }

/** The answers, in the order of the calls. `error` is tRPC's error shape. */
export type BatchAnswer = { data: unknown } | { error: { message: string; code: number; data: unknown } }

export const batchPath = '/batch'
export const batchType = 'application/vnd.msgpack'
/** The most calls in one batch. */
export const batchCallLimit = 512
/** The most bytes of a batch: the largest body that a gateway can be told to take fits in, with what goes along. */
export const batchByteLimit = 17 * 1024 * 1024

addExtension({
  Class: Decimal as unknown as new (text: string) => Decimal,
  type: 1,
  write: (value: Decimal) => value.toFixed(),
  read: parseDecimal,
})
const packr = new Packr()

/** The body of a batch, or of its answers. Date and Decimal arrive intact. */
export function packBatch(batch: BatchCall[] | BatchAnswer[]): Buffer {
  return packr.pack(batch)
}

/** @throws when the bytes are not MessagePack */
export function unpackBatch(body: Uint8Array): unknown {
  return packr.unpack(body)
}
