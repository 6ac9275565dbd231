import { logOptions } from '@workspace-wallet/core/contract'
import { type Logger, pino } from 'pino'

export type Log = Logger

/** Lines are gathered for this long, or until they fill a buffer: a write for each costs more than the line. */
const gatherMs = 100

/**
 * Structured logs on standard output, complete when the program ends by itself. No secret, signature or token is ever
 * passed to it.
 */
export function createLog(level: string): Log {
  const output = pino.destination({ dest: 1, sync: true, minLength: 8_192 })
  setInterval(() => output.flushSync(), gatherMs).unref()
  process.on('exit', () => output.flushSync())
  return pino(logOptions('gateway', level), output)
}
