import { type Logger, pino } from 'pino'

export type Log = Logger

/** Structured logs on standard output. No secret, signature or token is ever passed to it. */
export function createLog(level: string): Log {
  return pino({ level, base: { service: 'gateway', pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime })
}
