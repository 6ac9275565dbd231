/** Runs the load generator (load.ts) in a process. One process makes several runs, so that its code is compiled. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { LoadPlan, LoadResult } from '../load/plan.ts'
import { type CpuTimes, costPerOperation, readCpuTimes, type Watched } from '../measure/cpu.ts'

/** `cpuMicros`: the CPU time of one request in each watched process, in microseconds. */
export type Run = LoadResult & { cpuMicros: CpuTimes | null }

export type LoadProcess = {
  /** @throws Error when a request fails with a code that the plan does not allow: rates of failures mean nothing */
  run(plan: LoadPlan, watched?: Watched): Promise<Run>
  stop(): void
}

export function startLoadProcess(): LoadProcess {
  const child = fork(fileURLToPath(new URL('../load/load.ts', import.meta.url)))
  const exited = once(child, 'exit')
  return {
    async run(plan, watched = {}) {
      const all = { ...watched, load: child.pid! }
      const before = readCpuTimes(all)
      child.send(plan)
      const answer = await Promise.race([once(child, 'message'), exited.then(() => null)])
      if (!answer) throw new Error('The load generator has exited. Its error is above.')
      const result = answer[0] as LoadResult
      if (Object.keys(result.failures).some(code => !plan.allowedFailures?.includes(code))) {
        // Otherwise the benchmark would wait for it before it exits.
        child.disconnect()
        throw new Error(`${plan.kind} ${plan.target ?? ''} failed: ${JSON.stringify(result.failures)}`)
      }
      return { ...result, cpuMicros: costPerOperation(before, readCpuTimes(all), result.total) }
    },
    stop: () => child.disconnect(),
  }
}
