import type { Log } from '../create-log.ts'
import type { TracedProgram, Tracing } from './sdk.ts'
import { type TracingSettings, tracesUrlOf } from './settings.ts'

export { tracingVariables } from './settings.ts'

/**
 * Starts tracing, if the environment names a collector. Otherwise nothing of the SDK of OpenTelemetry is loaded. Call it once, before
 * the program serves anything.
 */
export async function startTracing(settings: TracingSettings, program: TracedProgram, log: Log): Promise<Tracing> {
  const url = tracesUrlOf(settings)
  if (url === undefined) return { stop: async () => {} }
  const { openSdk } = await import('./sdk.ts')
  return openSdk({ ...settings, url }, program, log)
}
