/** Why a part cannot be used now; null when it can. */
export type Fault = string | null

/** What the gateway cannot serve without, by name. */
export type Parts = Record<string, () => Promise<Fault>>

export type Readiness = {
  status: 'ready' | 'not ready' | 'stopping'
  parts: Record<string, { up: true } | { up: false; reason: string }>
}

/** How long a part that was found to be up need not be asked again. */
const upMs = 200

/**
 * The same check, made once for all who ask at the same time, and seldom while the part is up: anybody may ask the public
 * listener, and a check costs the part a write.
 */
export function shared(check: () => Promise<Fault>): () => Promise<Fault> {
  let upUntilMs = Number.NEGATIVE_INFINITY
  let checking: Promise<Fault> | undefined
  const checked = async () => {
    const fault = await check()
    if (fault === null) upUntilMs = performance.now() + upMs
    return fault
  }
  return async () => {
    if (performance.now() < upUntilMs) return null
    checking ??= checked().finally(() => {
      checking = undefined
    })
    return checking
  }
}

/** Asks every part. */
export async function readReadiness(parts: Parts, isStopping: boolean): Promise<Readiness> {
  const states = await Promise.all(
    Object.entries(parts).map(async ([part, faultOf]) => {
      const reason = await faultOf()
      return [part, reason === null ? { up: true as const } : { up: false as const, reason }] as const
    }),
  )
  const isUp = states.every(([, { up }]) => up)
  return { status: isStopping ? 'stopping' : isUp ? 'ready' : 'not ready', parts: Object.fromEntries(states) }
}
