/** Checks a dependency. Resolves to why it is unavailable, or null if it is available. */
export type HealthCheck = () => Promise<string | null>

/** The health checks of what the gateway cannot serve without, by name. */
export type HealthChecks = Record<string, HealthCheck>

export type Readiness = {
  status: 'ready' | 'not ready' | 'stopping'
  parts: Record<string, { up: true } | { up: false; reason: string }>
}

/** How long a successful check is valid. */
const upMs = 200

/** The same function, but concurrent callers share one run. */
export function shareRuns<Value>(run: () => Promise<Value>): () => Promise<Value> {
  let running: Promise<Value> | undefined
  return () => {
    running ??= run().finally(() => {
      running = undefined
    })
    return running
  }
}

/**
 * The same function, but those who call during a run share the one after it: what they get was read after they called, however many
 * they are.
 */
export function shareNextRun<Value>(run: () => Promise<Value>): () => Promise<Value> {
  let running: Promise<unknown> = Promise.resolve()
  let next: Promise<Value> | undefined
  return () => {
    next ??= running.then(() => {
      const value = run()
      running = value.catch(() => {})
      next = undefined
      return value
    })
    return next
  }
}

/**
 * The same check, but concurrent callers share one run, and a successful result is reused for a short time. Anybody may
 * request /readyz of the public listener, and a check costs the dependency a write.
 */
export function sharedCheck(check: HealthCheck): HealthCheck {
  let upUntilMs = Number.NEGATIVE_INFINITY
  const run = shareRuns(async () => {
    const fault = await check()
    if (fault === null) upUntilMs = performance.now() + upMs
    return fault
  })
  return async () => (performance.now() < upUntilMs ? null : run())
}

/** Runs all checks. */
export async function readReadiness(checks: HealthChecks, isStopping: boolean): Promise<Readiness> {
  const states = await Promise.all(
    Object.entries(checks).map(async ([part, check]) => {
      const reason = await check()
      return [part, reason === null ? { up: true as const } : { up: false as const, reason }] as const
    }),
  )
  const isUp = states.every(([, { up }]) => up)
  return { status: isStopping ? 'stopping' : isUp ? 'ready' : 'not ready', parts: Object.fromEntries(states) }
}

/** Why the parts are not ready, as one sentence; null if they are. */
export function faultOf({ parts }: Readiness): string | null {
  const faults = Object.entries(parts).flatMap(([part, state]) => (state.up ? [] : [`${part}: ${state.reason}`]))
  return faults.length === 0 ? null : faults.join('; ')
}
