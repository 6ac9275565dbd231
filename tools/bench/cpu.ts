/** CPU time by process, from /proc: on Linux only. */
import { readdirSync, readFileSync } from 'node:fs'

/** What Linux counts CPU time in, whatever its kernel was built with. */
const ticksPerSecond = 100

/** Process ids by name; the children of each count too, those that have ended among them. */
export type Watched = Record<string, number>
/** In microseconds. */
export type CpuTimes = Record<string, number>

/** The CPU time that each has used so far; null where the system does not tell. */
export function readCpuTimes(watched: Watched): CpuTimes | null {
  if (process.platform !== 'linux') return null
  const processes = readdirSync('/proc').flatMap(name => (/^\d+$/.test(name) ? (readStat(Number(name)) ?? []) : []))
  const times: CpuTimes = {}
  for (const [name, pid] of Object.entries(watched)) {
    const own = processes.filter(each => each.pid === pid || each.parentPid === pid)
    const ticks = own.reduce((sum, each) => sum + each.ticks + (each.pid === pid ? each.endedTicks : 0), 0)
    times[name] = (ticks * 1e6) / ticksPerSecond
  }
  return times
}

/** What each operation has cost each process, in microseconds. */
export function costPerOperation(before: CpuTimes | null, after: CpuTimes | null, operations: number): CpuTimes | null {
  if (!before || !after) return null
  return Object.fromEntries(Object.keys(after).map(name => [name, (after[name]! - before[name]!) / operations]))
}

function readStat(pid: number) {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the program's name in parentheses and may itself hold spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const sum = (first: number) => Number(fields[first]) + Number(fields[first + 1])
    return { pid, parentPid: Number(fields[1]), ticks: sum(11), endedTicks: sum(13) }
  } catch {
    return null
  }
}
