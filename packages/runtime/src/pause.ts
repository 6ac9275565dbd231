import { setTimeout } from 'node:timers/promises'

/** Resolves after this time, or when `stopping` is aborted. It does not keep the program running. */
export async function pause(ms: number, stopping: AbortSignal): Promise<void> {
  await setTimeout(ms, undefined, { signal: stopping, ref: false }).catch(() => {})
}
