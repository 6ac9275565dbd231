import type { ProcedureType } from '@trpc/server'
import { addExtension, Packr } from 'msgpackr'
import { Decimal, decimalOf } from './money.ts'

/**
 * A flight carries many calls in one HTTP request, and their answers in its response: one request costs core and
 * caller far more than one call. `POST /flight`, both bodies in MessagePack: superjson, which `/trpc` speaks, takes
 * eight times as long over the same calls (see docs/decisions).
 */
export type FlightCall = { path: string; type: ProcedureType; input: unknown }

/** The answers, in the order of the calls. `error` is tRPC's error shape. */
export type FlightAnswer = { data: unknown } | { error: { message: string; code: number; data: unknown } }

export const flightPath = '/flight'
export const flightType = 'application/vnd.msgpack'
/** The most calls in one flight. */
export const flightLimit = 512
/** The most bytes of a flight: the largest body that a gateway can be told to take fits in, with what goes along. */
export const flightBytes = 17 * 1024 * 1024

addExtension({
  Class: Decimal as unknown as new (text: string) => Decimal,
  type: 1,
  write: (value: Decimal) => value.toFixed(),
  read: decimalOf,
})
const packr = new Packr()

/** The body of a flight, or of its answers. Date and Decimal arrive intact. */
export function packFlight(load: FlightCall[] | FlightAnswer[]): Buffer {
  return packr.pack(load)
}

/** @throws when the bytes are not MessagePack */
export function unpackFlight(body: Uint8Array): unknown {
  return packr.unpack(body)
}
