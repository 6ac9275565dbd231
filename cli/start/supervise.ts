/** Keeps one service running: when it ends although nobody asked it to, it is started again. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Child } from '../../tools/services/child.ts'
import { inOneLine } from './disk-full.ts'

const firstDelayMs = 100
const longestDelayMs = 5_000
const healthyAfterMs = 30_000

export interface Supervised {
  stop(): Promise<void>
  forceStop(): void
}

/**
 * Rejects when the first start fails: nothing is gained by trying again what never worked. After `signal` nothing is
 * started any more.
 */
export async function supervise(
  name: string,
  start: (signal: AbortSignal) => Promise<Child>,
  signal: AbortSignal,
  say: (line: string) => void,
): Promise<Supervised> {
  const ending = new AbortController()
  const noMore = AbortSignal.any([signal, ending.signal])
  let current = await start(noMore)
  const watch = keepAlive()

  async function keepAlive(): Promise<void> {
    let delayMs = firstDelayMs
    for (;;) {
      const since = Date.now()
      let trouble = `${name} ended unexpectedly (${await current.exited})`
      if (Date.now() - since > healthyAfterMs) delayMs = firstDelayMs
      for (let up = false; !up; ) {
        if (noMore.aborted) return
        say(`${trouble}; starting it again in ${delayMs} ms`)
        try {
          await sleep(delayMs, undefined, { signal: noMore })
          delayMs = Math.min(delayMs * 2, longestDelayMs)
          current = await start(noMore)
          up = true
        } catch (error) {
          trouble = inOneLine((error as Error).message)
        }
      }
      // The stop came too late for that start, and has only seen the one before.
      if (noMore.aborted) return current.stop()
      say(`${name} is running again`)
    }
  }

  return {
    forceStop: () => current.forceStop(),
    async stop() {
      ending.abort()
      await current.stop()
      await watch
    },
  }
}
