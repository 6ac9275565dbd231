import { LogOutput, logOptions, lossLine } from '@workspace-wallet/core/contract'
import { type Logger, pino } from 'pino'

export type Log = Logger

/**
 * Structured logs on standard output, one JSON object a line. Nothing that is a secret, token or signature is ever
 * passed to it. Whoever ends the process flushes `output` before.
 */
export function createLog(level: string): { log: Log; output: LogOutput } {
  const output = new LogOutput(1, loss => lossLine('gateway', loss))
  return { log: pino(logOptions('gateway', level), output), output }
}
