import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from './connection.ts'
import { runOpenLoop } from './open-loop.ts'
import { type LoadPlan, type LoadResult, latenciesOf, portOf } from './plan.ts'
import { Requests } from './requests.ts'

/**
 * The load generator: a process that sends signed requests, each with a new nonce.
 *
 * Its parent sends it one `LoadPlan` after the other. It warms up, measures, and answers each with a `LoadResult`.
 */
async function runClosedLoop(plan: LoadPlan): Promise<LoadResult> {
  const latencies: number[] = []
  const failures: Record<string, number> = {}
  let isMeasuring = false
  let total = 0
  const connections = Array.from({ length: plan.connections }, (_, index) => {
    const requests = new Requests(plan, index)
    let sentAtMs = 0
    const send = () => {
      sentAtMs = performance.now()
      connection.send(requests.next())
    }
    const connection = new Connection(plan.host, portOf(plan, index), {
      onResponse({ code }) {
        total++
        if (isMeasuring && code === '2000') latencies.push(performance.now() - sentAtMs)
        else if (isMeasuring) failures[code] = (failures[code] ?? 0) + 1
        send()
      },
      onClose(error) {
        throw error
      },
    })
    send()
    return connection
  })
  await sleep(plan.warmUpMs)
  const startedAt = performance.now()
  isMeasuring = true
  await sleep(plan.measureMs)
  // Until the first response, if it takes longer than the measurement.
  while (latencies.length === 0 && Object.keys(failures).length === 0) await new Promise(setImmediate)
  isMeasuring = false
  const seconds = (performance.now() - startedAt) / 1000
  for (const connection of connections) connection.stop()
  const answered = latencies.length
  return { perSecond: answered / seconds, answered, total, failures, latencyMs: latenciesOf(latencies) }
}

process.on('message', async (plan: LoadPlan) => {
  process.send?.(await (plan.arrivalsPerSecond === undefined ? runClosedLoop(plan) : runOpenLoop(plan)))
})
