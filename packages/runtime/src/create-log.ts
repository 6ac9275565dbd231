import { type Logger, pino } from 'pino'
import { logOptions, lossLine } from './log.ts'
import { LogOutput } from './log-output.ts'

export type Log = Logger

/**
 * Structured logs on standard output, one JSON object a line. Nothing that is a secret, token or signature is ever
 * passed to it. Whoever ends the process flushes `output` before.
 */
export function createLog(service: string, level: string): { log: Log; output: LogOutput } {
  const output = new LogOutput(1, loss => lossLine(service, loss))
  return { log: pino(logOptions(service, level), output), output }
}
