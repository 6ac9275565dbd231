import { setTimeout as sleep } from 'node:timers/promises'

/**
 * What a client of a load waits before its next call: at full speed, clients take the processors from the programs that they test,
 * and, while a program restarts, collect thousands of refused calls. After a refusal it waits longer, as Retry-After asks it to.
 * No test depends on these times.
 */
export function pauseAfter(code: string): Promise<void> {
  return sleep(code === '2000' ? 20 : 200)
}
