/** The load generator as seen from here: one process for a whole stage, so that it is warm when it counts. */
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import type { LoadPlan, LoadResult } from './load.ts'

export type Load = {
  pid: number
  /** @throws when anything but success was answered: a figure of refusals would say nothing */
  run(plan: LoadPlan): Promise<LoadResult>
  stop(): void
}

export function startLoad(): Load {
  const child = fork(fileURLToPath(new URL('./load.ts', import.meta.url)))
  const exited = once(child, 'exit')
  return {
    pid: child.pid!,
    async run(plan) {
      child.send(plan)
      const answer = await Promise.race([once(child, 'message'), exited.then(() => null)])
      if (!answer) throw new Error('The load generator has ended: see above.')
      const result = answer[0] as LoadResult
      if (Object.keys(result.refused).length > 0)
        throw new Error(`${plan.kind} ${plan.target ?? ''} was refused: ${JSON.stringify(result.refused)}`)
      return result
    },
    stop: () => child.disconnect(),
  }
}
