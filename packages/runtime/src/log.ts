import type { LogLoss } from './log-output.ts'

/**
 * The pino options of all our programs: one JSON object per line. Errors are logged with type, code, message, stack and
 * causes only.
 */
export function logOptions(service: string, level: string) {
  return {
    level,
    base: { service, pid: process.pid },
    timestamp,
    serializers: { err: describeError },
  }
}

/** The line that reports lost lines, in the format of all other lines. */
export function lossLine(service: string, { lost, code }: LogLoss): string {
  const time = new Date().toISOString()
  return `${JSON.stringify({ level: 50, time, service, pid: process.pid, lost, code, msg: `log lines were lost: ${logLossReason(code)}` })}\n`
}

/** Why lines of a log were lost, and what to do about it. @param code of a LogLoss */
export function logLossReason(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'the disk is full, free some space'
  if (code === 'EPIPE') return 'the reader of the log has exited'
  if (code === 'SLOW_READER') return 'the reader of the log is too slow'
  return `they could not be written (${code})`
}

let lastMs = 0
let lastText = ''

/** ISO 8601. Cached for a millisecond, because formatting a date costs as much as the rest of a line. */
function timestamp(): string {
  const nowMs = Date.now()
  if (nowMs !== lastMs) {
    lastMs = nowMs
    lastText = `,"time":"${new Date(nowMs).toISOString()}"`
  }
  return lastText
}

type Described = { type: string; code?: unknown; message: string; stack?: string; cause?: Described }

/** Maximum depth of nested causes. */
const causesLimit = 5

/**
 * The fields of an error that may be logged. Database errors also contain the rejected row, which can include encrypted
 * secrets.
 */
export function describeError(error: unknown, depth = 0): Described {
  if (!(error instanceof Error)) return { type: typeof error, message: 'a value was thrown that is not an Error' }
  const { code, cause, stack } = error as Error & { code?: unknown }
  const frames = stack?.split('\n').filter(line => /^\s+at /.test(line))
  return {
    type: error.constructor.name,
    ...(code === undefined ? {} : { code }),
    // MikroORM appends the rejected row.
    message: error.message.split('\n - detail: ')[0]!,
    ...(frames ? { stack: frames.join('\n') } : {}),
    ...(cause === undefined || depth >= causesLimit ? {} : { cause: describeError(cause, depth + 1) }),
  }
}
