/** Waits for a real condition instead of guessing how long it takes: asks again until the answer is truthy. */
import { setTimeout as sleep } from 'node:timers/promises'

export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false | null> | T | undefined | false | null,
  withinMs = 30_000,
): Promise<T> {
  const deadline = Date.now() + withinMs
  for (;;) {
    const answer = await ask()
    if (answer) return answer
    if (Date.now() > deadline) throw new Error(`Not within ${withinMs} ms: ${what}`)
    await sleep(10)
  }
}
