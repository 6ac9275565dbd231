/** Services, which say when they are ready, and tasks, which run to their end. Their output goes to log files. */
import { type Child, type NodeCommand, spawnNode } from './child.ts'
import { openLog } from './logs.ts'

export interface LoggedCommand extends NodeCommand {
  name: string
  logFile: string
}

const readyWithinMs = 60_000

/** Resolves when the service says that it is ready; rejects, with the end of its log, when it ends before. */
export async function startService(command: LoggedCommand, signal: AbortSignal): Promise<Child> {
  const { child, tail } = await launch(command, signal)
  const tooLate = AbortSignal.timeout(readyWithinMs)
  const outcome = await Promise.race([child.ready, child.exited, aborted(AbortSignal.any([signal, tooLate]))])
  if (typeof outcome === 'object') return child

  await child.stop()
  signal.throwIfAborted()
  const what = tooLate.aborted ? `was not ready within ${readyWithinMs / 1000} s` : `did not start (${outcome})`
  throw new Error(`${command.name} ${what}; the end of ${command.logFile}:\n${await tail()}`)
}

/** Runs a program to its end; rejects, with the end of its log, unless that is exit 0. */
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
