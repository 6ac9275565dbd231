/** Says on stderr what is going on, and how long it has been. */
export type Say = (what: string) => void

const startedAt = performance.now()

export function sayWithin(stage: string): Say {
  return what => {
    const seconds = Math.floor((performance.now() - startedAt) / 1000)
    const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    console.error(`[${clock.padStart(5)}] ${stage}: ${what}`)
  }
}
