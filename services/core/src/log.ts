import { type Logger, pino } from 'pino'
import { logOptions } from '../contract/index.ts'

export type Log = Logger

/** Lines are gathered for this long, or until they fill a buffer: a write for each costs more than the line. */
const gatherMs = 100

/**
 * Structured logs on standard output, complete when the program ends by itself. Nothing that is a secret, token or
 * signature is ever passed to it.
 */
export function createLog(service: string, level: string): Log {
  const output = pino.destination({ dest: 1, sync: true, minLength: 8_192 })
  setInterval(() => output.flushSync(), gatherMs).unref()
  process.on('exit', () => output.flushSync())
  return pino(logOptions(service, level), output)
}
