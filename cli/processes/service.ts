/** Runs services, which report when they are ready, and tasks, which run to completion. Both write to log files. */
import { type Child, type NodeCommand, spawnNode } from './child.ts'
import { openLog } from './logs.ts'

export interface LoggedCommand extends NodeCommand {
  name: string
  logFile: string
}

/** A service did not start. `outcome`: how it ended, such as 'exit 1'. */
export class StartFailure extends Error {
  readonly outcome: string

  constructor(message: string, outcome: string) {
    super(message)
    this.outcome = outcome
  }
}

const startTimeoutMs = 60_000

/**
 * Resolves when the service reports that it is ready.
 *
 * @param signal aborts the start
 * @throws StartFailure with the end of the log, if the service exits first or takes longer than 60 s
 */
export async function startService(command: LoggedCommand, signal: AbortSignal): Promise<Child> {
  const { child, tail } = await launch(command, signal)
  const timeout = AbortSignal.timeout(startTimeoutMs)
  const outcome = await Promise.race([child.ready, child.exited, aborted(AbortSignal.any([signal, timeout]))])
  if (typeof outcome === 'object') return child

  await child.stop()
  signal.throwIfAborted()
  const what = timeout.aborted ? `was not ready within ${startTimeoutMs / 1000} s` : `did not start (${outcome})`
  throw new StartFailure(`${command.name} ${what}; the end of ${command.logFile}:\n${await tail()}`, outcome)
}

/**
 * Runs a program to completion.
 *
 * @throws Error with the end of the log, unless the exit code is 0
 */
export async function runTask(command: LoggedCommand, signal: AbortSignal): Promise<void> {
  const { child, tail } = await launch(command, signal)
  const outcome = await Promise.race([child.exited, aborted(signal)])
  await child.stop()
  signal.throwIfAborted()
  if (outcome === 'exit 0') return
  throw new Error(`${command.name} failed (${outcome}); the end of ${command.logFile}:\n${await tail()}`)
}

async function launch(command: LoggedCommand, signal: AbortSignal) {
  signal.throwIfAborted()
  const log = await openLog(command.logFile)
  const child = spawnNode(command, { stdout: log.fd, stderr: log.fd })
  await log.close()
  return { child, tail: log.tail }
}

function aborted(signal: AbortSignal): Promise<'aborted'> {
  return new Promise(resolve => {
    if (signal.aborted) resolve('aborted')
    signal.addEventListener('abort', () => resolve('aborted'), { once: true })
  })
}
