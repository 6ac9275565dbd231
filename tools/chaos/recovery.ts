/** Waits for the recovery from a fault. */
import { setTimeout as sleep } from 'node:timers/promises'
import type { Testbed } from './testbed.ts'
import type { Traffic } from './traffic.ts'

const pollMs = 20
/** A member of a cluster that is copied again takes longest. */
const withinMs = 180_000

/** Waits until every part is ready and each gateway has made a new transfer. @throws Error after three minutes */
export async function untilServed(
  { gatewayUrls, coreUrls, courierUrls }: Testbed,
  traffic: Traffic,
  isOver: () => Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + withinMs
  const until = async (what: string, ask: () => Promise<boolean>) => {
    while (!(await ask())) {
      if (performance.now() > deadline) throw new Error(`waited ${withinMs / 1000} s in vain until ${what}`)
      await sleep(pollMs)
    }
  }
  await until('every part is running again', isOver)
  await Promise.all([
    ...[...coreUrls, ...courierUrls, ...gatewayUrls].map(url => until(`${url} is ready`, () => isReady(url))),
    ...gatewayUrls.map(url => until(`${url} makes a transfer`, () => traffic.probe(url))),
  ])
}

async function isReady(url: string): Promise<boolean> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(1_000) })
    await response.body?.cancel()
    return response.ok
  } catch {
    return false
  }
}
