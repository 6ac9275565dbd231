/** Runs third-party servers (Redis, HAProxy, nginx) and waits until they are ready. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Guarded, type GuardedCommand, runGuarded } from './guarded.ts'
import { openLog } from './logs.ts'

const pollMs = 10
const startTimeoutMs = 30_000

/**
 * Resolves when the server is ready.
 *
 * @param isReady called until it returns true
 * @throws Error with the end of the log, if the server exits first or takes longer than 30 s
 */
export async function startServer(
  command: Omit<GuardedCommand, 'cwd'>,
  logFile: string,
  isReady: () => Promise<boolean>,
): Promise<Guarded> {
  const log = await openLog(logFile)
  const server = await runGuarded({ ...command, cwd: '/' }, log.fd).finally(log.close)
  const deadline = Date.now() + startTimeoutMs
  while (!(await isReady())) {
    if (!server.hasExited() && Date.now() < deadline) await sleep(pollMs)
    else {
      await server.stop()
      throw new Error(`${command.command} did not start (${await server.exited}).\n${await log.tail()}`)
    }
  }
  return server
}
