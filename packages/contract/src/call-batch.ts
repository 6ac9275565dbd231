import { addExtension, Packr } from 'msgpackr'
import { Decimal, parseDecimal } from './money.ts'

/**
 * One call of a batch. A connection to `/batch` takes many calls in one frame and returns their results in few, because an
 * exchange costs far more than a call. Both are MessagePack, which is eight times as fast as the superjson of `/trpc`
 * (docs/decisions/0002, docs/decisions/0046).
 */
export type BatchCall = {
  path: string
  type: 'query' | 'mutation' | 'subscription'
  input: unknown
  /** The W3C `traceparent` of the call, if its caller is traced. */
  traceparent?: string | undefined
}

/** The response to one call. `error` is tRPC's error shape. */
export type BatchAnswer = { data: unknown } | { error: { message: string; code: number; data: unknown } }

/** Responses to some calls of a batch, whose indexes `calls` has, before those to the rest, which come in the order of the calls. */
export type BatchPart = { calls: number[]; answers: BatchAnswer[] }

export const batchPath = '/batch'
/** What a connection to `batchPath` is upgraded to, in the `Upgrade` header. */
export const batchProtocol = 'workspace-wallet-batches'
/** Maximum number of calls in one batch. */
export const batchCallLimit = 512
/** Maximum size of a batch. A create with the largest body that a gateway can be configured to accept fits in. */
export const batchByteLimit = 2 * 1024 * 1024

addExtension({
  Class: Decimal as unknown as new (text: string) => Decimal,
  type: 1,
  write: (value: Decimal) => value.toFixed(),
  read: parseDecimal,
})
const packr = new Packr()

/** The body of a batch, of a part or of the rest of its responses. Date and Decimal values are preserved. */
export function packBatch(batch: BatchCall[] | BatchPart | BatchAnswer[]): Buffer {
  return packr.pack(batch)
}

/** @throws when the bytes are not MessagePack */
export function unpackBatch(body: Uint8Array): unknown {
  return packr.unpack(body)
}
