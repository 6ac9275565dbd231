/** The most memory that each kind of part has had, from /proc: on Linux only. */
import { readFileSync } from 'node:fs'
import type { PartKind, Testbed } from './testbed.ts'

const everyMs = 500
/** PostgreSQL's processes share most of theirs: a sum of them would say nothing. */
const watched: PartKind[] = ['gateway', 'core', 'Redis']

/** In MiB; null where the system does not tell. */
export type PeakMemory = Partial<Record<PartKind, number>> | null

export function watchMemory({ parts }: Testbed): { stop(): PeakMemory } {
  const peaks: Partial<Record<PartKind, number>> = {}
  const look = () => {
    for (const part of parts)
      if (watched.includes(part.kind)) peaks[part.kind] = Math.max(peaks[part.kind] ?? 0, peakOf(part.pid()))
  }
  const timer = setInterval(look, everyMs)
  return {
    stop() {
      clearInterval(timer)
      look()
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
