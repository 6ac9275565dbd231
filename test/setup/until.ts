import { setTimeout as sleep } from 'node:timers/promises'

/**
 * Waits for a condition, instead of for a time that may be too short on a busy machine.
 *
 * @param what the condition, for the error
 * @param ask is called until it returns a truthy value, which `until` returns
 * @param withinMs only ends a test that hangs; no test may depend on it
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false | null> | T | undefined | false | null,
  withinMs = 100_000,
): Promise<T> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    if (Date.now() > deadline) throw new Error(`Waited ${withinMs} ms in vain: ${what}`)
    await sleep(10)
  }
}
