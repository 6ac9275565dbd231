/** How long it takes until everything serves again. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Testbed } from './testbed.ts'
import type { Traffic } from './traffic.ts'

const pollMs = 20
const withinMs = 60_000

/** Until every part is ready and a new transfer is acknowledged at each gateway. @throws Error after a minute */
export async function untilServed(
  { gatewayUrls, coreUrls }: Testbed,
  traffic: Traffic,
  isOver: () => Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + withinMs
  const until = async (what: string, ask: () => Promise<boolean>) => {
    while (!(await ask())) {
      if (performance.now() > deadline) throw new Error(`not within ${withinMs / 1000} s: ${what}`)
      await sleep(pollMs)
    }
  }
  await until('every part that was ended is started again', isOver)
  await Promise.all([
    ...[...coreUrls, ...gatewayUrls].map(url => until(`${url} is ready`, () => isReady(url))),
    ...gatewayUrls.map(url => until(`${url} makes a transfer`, () => traffic.probe(url))),
  ])
}

async function isReady(url: string): Promise<boolean> {
  const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1_000) }).catch(() => null)
  await response?.body?.cancel()
  return response?.ok ?? false
}
