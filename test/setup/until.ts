import { setTimeout as sleep } from 'node:timers/promises'
import { describeRunningPrograms } from '../../cli/processes/program.ts'

/**
 * Waits for a condition, instead of for a time that may be too short on a busy machine.
 *
 * @param what the condition, for the error
 * @param ask is called until it returns a truthy value, which `until` returns
 * @param withinMs only ends a test that hangs; no test may depend on it
 * @throws Error with the condition and the last lines of the programs that run
 */
export async function until<T>(
  what: string,
  ask: () => Promise<T | undefined | false | null> | T | undefined | false | null,
  withinMs = 120_000,
): Promise<T> {
  const late = Promise.withResolvers<never>()
  const timer = setTimeout(() => {
    late.reject(new Error(`Waited ${withinMs / 1000} s in vain: ${what}\n${describeRunningPrograms()}`))
  }, withinMs)
  try {
    // Longer and longer, because many questions are calls of the programs that are to get ready.
    for (let pauseMs = 10; ; pauseMs = Math.min(50, 1.2 * pauseMs)) {
      // The question itself may hang.
      const answer = await Promise.race([ask(), late.promise])
      if (answer) return answer
      await Promise.race([sleep(pauseMs), late.promise])
    }
  } finally {
    clearTimeout(timer)
    late.promise.catch(() => {})
  }
}
