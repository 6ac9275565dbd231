/** Keeps one service running: restarts it whenever it exits unexpectedly. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Child } from '../processes/child.ts'
import { inOneLine } from './disk-full.ts'

const firstDelayMs = 100
const longestDelayMs = 5_000
const healthyAfterMs = 30_000

export interface Supervised {
  stop(): Promise<void>
  forceStop(): void
}

/**
 * Starts a service and restarts it whenever it exits, after a delay that doubles from 0.1 s up to 5 s and is reset once the
 * service has run for 30 s. Rejects if the first start fails: a service that never ran is not retried.
 *
 * @param start starts the service once
 * @param signal ends the restarts
 * @param say receives a line for each exit and each restart
 */
export async function supervise(
  name: string,
  start: (signal: AbortSignal) => Promise<Child>,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<Supervised> {
  const stopping = new AbortController()
  const ended = AbortSignal.any([signal, stopping.signal])
  let current = await start(ended)
  const watch = keepAlive()

  async function keepAlive(): Promise<void> {
    let delayMs = firstDelayMs
    for (;;) {
      const since = Date.now()
      let reason = `${name} exited unexpectedly (${await current.exited})`
      if (Date.now() - since > healthyAfterMs) delayMs = firstDelayMs
      for (let isRunning = false; !isRunning; ) {
        if (ended.aborted) return
        say(`${reason}; restarting it in ${delayMs} ms`)
        try {
          await sleep(delayMs, undefined, { signal: ended })
          delayMs = Math.min(delayMs * 2, longestDelayMs)
          current = await start(ended)
          isRunning = true
        } catch (error) {
          reason = inOneLine((error as Error).message)
        }
      }
      // `stop` was called during that start, and stopped only the previous process.
      if (ended.aborted) return stopCurrent()
      say(`${name} is running again`)
    }
  }

  async function stopCurrent(): Promise<void> {
    if (!(await current.stop())) say(`${name} did not end in time, and was killed`)
  }

  return {
    forceStop: () => current.forceStop(),
    async stop() {
      stopping.abort()
      await stopCurrent()
      await watch
    },
  }
}
