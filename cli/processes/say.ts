/** Progress lines on standard error, each with the time since the program started. */
export type Say = (text: string) => void

const startedAt = performance.now()

export function sayWithin(stage: string): Say {
  return text => {
    const seconds = Math.floor((performance.now() - startedAt) / 1000)
    const clock = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, '0')}`
    console.error(`[${clock.padStart(5)}] ${stage}: ${text}`)
  }
}
