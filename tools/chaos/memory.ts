/** The peak memory of each kind of part, from /proc, on Linux only. */
import { readFileSync } from 'node:fs'
import type { PartKind } from './parts/parts.ts'
import type { Testbed } from './testbed.ts'

const everyMs = 500
/** Without PostgreSQL, whose processes share most of their memory. */
const watched: PartKind[] = ['gateway', 'core', 'courier', 'Redis']

/** In MiB; null on other systems than Linux. */
export type PeakMemory = Partial<Record<PartKind, number>> | null

export function watchMemory({ parts }: Testbed): { stop(): PeakMemory } {
  const peaks: Partial<Record<PartKind, number>> = {}
  const measure = () => {
    for (const part of parts)
      if (watched.includes(part.kind)) peaks[part.kind] = Math.max(peaks[part.kind] ?? 0, peakOf(part.pid()))
  }
  const timer = setInterval(measure, everyMs)
  return {
    stop() {
      clearInterval(timer)
      measure()
      return process.platform === 'linux' ? peaks : null
    },
  }
}

function peakOf(pid: number): number {
  try {
    const kibibytes = /^VmHWM:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]
    return Math.round(Number(kibibytes ?? 0) / 1024)
  } catch {
    return 0
  }
}
