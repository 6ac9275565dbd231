import { type Logger, pino } from 'pino'
import { logOptions, lossLine } from './log.ts'
import { LogOutput } from './log-output.ts'

export type Log = Logger

/**
 * Creates a logger that writes one JSON object per line to standard output. Never pass it a secret, token or signature.
 * Flush `output` before you end the process.
 */
export function createLog(service: string, level: string): { log: Log; output: LogOutput } {
  const output = new LogOutput(1, loss => lossLine(service, loss))
  return { log: pino(logOptions(service, level), output), output }
}
