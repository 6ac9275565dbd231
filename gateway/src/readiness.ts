/** Why a part cannot be used now; null when it can. */
export type Fault = string | null

/** What the gateway cannot serve without, by name. */
export type Parts = Record<string, () => Promise<Fault>>

export type Readiness = {
  status: 'ready' | 'not ready' | 'stopping'
  parts: Record<string, { up: true } | { up: false; reason: string }>
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
