/** Servers that are not ours (Redis, HAProxy, nginx), on a port of this machine. */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Guarded, type GuardedCommand, runGuarded } from './guarded.ts'
import { openLog } from './logs.ts'

const pollMs = 10
const readyWithinMs = 30_000

/**
 * Resolves when the server is ready; rejects, with the end of its log, when it ends before or takes too long.
 *
 * @param isReady asked until it says so
 */
export async function startServer(
  command: Omit<GuardedCommand, 'cwd'>,
  logFile: string,
  isReady: () => Promise<boolean>,
): Promise<Guarded> {
  const log = await openLog(logFile)
  const server = await runGuarded({ ...command, cwd: '/' }, log.fd).finally(log.close)
  const deadline = Date.now() + readyWithinMs
  while (!(await isReady())) {
    if (!server.hasExited() && Date.now() < deadline) await sleep(pollMs)
    else {
      await server.stop()
      throw new Error(`${command.command} did not start (${await server.exited}).\n${await log.tail()}`)
    }
  }
  return server
}
