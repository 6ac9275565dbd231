/** The load generator as seen from here: one process for a whole stage, so that it is warm when it counts. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { type CpuTimes, costPerOperation, readCpuTimes, type Watched } from './cpu.ts'
import type { LoadPlan, LoadResult } from './load.ts'

/** `cpuMicros`: what one request took of each process that was watched. */
export type Run = LoadResult & { cpuMicros: CpuTimes | null }

export type Load = {
  /** @throws when anything was refused that must not be: a figure of refusals would say nothing */
  run(plan: LoadPlan, watched?: Watched): Promise<Run>
  stop(): void
}

export function startLoad(): Load {
  const child = fork(fileURLToPath(new URL('./load.ts', import.meta.url)))
  const exited = once(child, 'exit')
  return {
    async run(plan, watched = {}) {
      const all = { ...watched, load: child.pid! }
      const before = readCpuTimes(all)
      child.send(plan)
      const answer = await Promise.race([once(child, 'message'), exited.then(() => null)])
      if (!answer) throw new Error('The load generator has ended: see above.')
      const result = answer[0] as LoadResult
      if (Object.keys(result.refused).some(code => !plan.mayBeRefused?.includes(code)))
        throw new Error(`${plan.kind} ${plan.target ?? ''} was refused: ${JSON.stringify(result.refused)}`)
      return { ...result, cpuMicros: costPerOperation(before, readCpuTimes(all), result.total) }
    },
    stop: () => child.disconnect(),
  }
}
