import type { ProcedureType } from '@trpc/server'

/**
 * A flight carries many calls in one HTTP request, and their answers in its response: one request costs core and
 * caller far more than one call. `POST /flight`, both bodies in superjson.
 */
export type FlightCall = { path: string; type: ProcedureType; input: unknown }

/** The answers, in the order of the calls. `error` is tRPC's error shape. */
export type FlightAnswer = { data: unknown } | { error: { message: string; code: number; data: unknown } }

export const flightPath = '/flight'
/** The most calls in one flight. */
export const flightLimit = 512
