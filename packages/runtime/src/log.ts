import type { LogLoss } from './log-output.ts'

/**
 * How every program of ours writes its log, as options for pino: one JSON object a line, and nothing of an error but
 * what it is and where it came from.
 */
export function logOptions(service: string, level: string) {
  return {
    level,
    base: { service, pid: process.pid },
    timestamp,
    serializers: { err: describeError },
  }
}

/** The line that reports that lines were lost, in the form of all others. */
export function lossLine(service: string, { lost, code }: LogLoss): string {
  const time = new Date().toISOString()
  return `${JSON.stringify({ level: 50, time, service, pid: process.pid, lost, code, msg: `log lines were lost: ${logLossReason(code)}` })}\n`
}

/** Why lines of a log were lost, and what to do about it. */
export function logLossReason(code: string): string {
  if (code === 'ENOSPC' || code === 'EDQUOT') return 'the disk is full, free some space'
  if (code === 'EPIPE') return 'what reads the log had ended'
  if (code === 'SLOW_READER') return 'what reads the log is too slow'
  return `they could not be written (${code})`
}

let lastMs = 0
let lastText = ''

/** ISO 8601. Lines of one millisecond share the text: writing a date costs as much as the rest of a line. */
function timestamp(): string {
  const nowMs = Date.now()
  if (nowMs !== lastMs) {
    lastMs = nowMs
    lastText = `,"time":"${new Date(nowMs).toISOString()}"`
  }
  return lastText
}

type Described = { type: string; code?: unknown; message: string; stack?: string; cause?: Described }

/** How deep causes are followed. */
const causesLimit = 5

/**
 * What a log may say of an error. Errors of a database bear more: the row that it refused, encrypted secrets in it.
 */
export function describeError(error: unknown, depth = 0): Described {
  if (!(error instanceof Error)) return { type: typeof error, message: 'something was thrown that is no error' }
  const { code, cause, stack } = error as Error & { code?: unknown }
  const frames = stack?.split('\n').filter(line => /^\s+at /.test(line))
  return {
    type: error.constructor.name,
    ...(code === undefined ? {} : { code }),
    // MikroORM adds the row that PostgreSQL refused.
    message: error.message.split('\n - detail: ')[0]!,
    ...(frames ? { stack: frames.join('\n') } : {}),
    ...(cause === undefined || depth >= causesLimit ? {} : { cause: describeError(cause, depth + 1) }),
  }
}
