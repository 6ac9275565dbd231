import { type Logger, pino } from 'pino'

export type Log = Logger

/** Structured logs on standard output. Nothing that names a secret, token or signature is ever passed to it. */
export function createLog(service: string, level: string): Log {
  return pino({ level, base: { service, pid: process.pid }, timestamp: pino.stdTimeFunctions.isoTime })
}
