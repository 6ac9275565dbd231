import type { Context } from './context.ts'

export type Call = { path: string; requestId: string | undefined; startedAt: number }

/**
 * Calls that have no line of their own at the usual level: gateways ask for the first two several times a second, and
 * the last has one with its batch (ledger/batch-log.ts).
 */
const logsAtDebug = new Set(['access.changes', 'access.markUsed', 'transfers.create'])

const slowMs = 1_000

/** One line in the log and one count in the metrics for each call, under the request id that its caller gave. */
export function recordAnswer({ core, token }: Context, { path, requestId, startedAt }: Call, code: string): void {
  const milliseconds = performance.now() - startedAt
  core.metrics.answered(path, code, milliseconds)
  const isSlow = milliseconds >= slowMs
  const level = isSlow ? 'warn' : code === 'ok' && logsAtDebug.has(path) ? 'debug' : 'info'
  if (!core.log.isLevelEnabled(level)) return
  const line = { requestId, path, code, milliseconds: Math.round(milliseconds * 100) / 100, caller: token.name }
  core.log[level](line, isSlow ? 'a call took long' : 'a call was answered')
}

/** The id of the request that this call belongs to, if its caller gave one. */
export function requestIdOf(input: unknown): string | undefined {
  const { caller } = (input ?? {}) as { caller?: { requestId?: unknown } }
  return typeof caller?.requestId === 'string' ? caller.requestId.slice(0, 64) : undefined
}
