/** CPU time of processes, from /proc, on Linux only. */
import { readdirSync, readFileSync } from 'node:fs'

/** The unit of CPU times in /proc, whatever the kernel was built with. */
const ticksPerSecond = 100

/** Process IDs by name. The children of a process count, also those that have exited. */
export type Watched = Record<string, number>
/** In microseconds. */
export type CpuTimes = Record<string, number>

/** The CPU time that each process has used so far; null on other systems than Linux. */
export function readCpuTimes(watched: Watched): CpuTimes | null {
  if (process.platform !== 'linux') return null
  const processes = readFamilies(Object.values(watched))
  const times: CpuTimes = {}
  for (const [name, pid] of Object.entries(watched)) {
    const own = processes.filter(each => each.pid === pid || each.parentPid === pid)
    const ticks = own.reduce((sum, each) => sum + each.ticks + (each.pid === pid ? each.endedTicks : 0), 0)
    times[name] = (ticks * 1e6) / ticksPerSecond
  }
  return times
}

/**
 * These processes and their children, read twice with the same result: a child that exits after its parent was read, and
 * before it is read itself, would be missing from both.
 */
function readFamilies(pids: readonly number[]): Stat[] {
  const read = () =>
    readdirSync('/proc')
      .flatMap(name => (/^\d+$/.test(name) ? (readStat(Number(name)) ?? []) : []))
      .filter(({ pid, parentPid }) => pids.includes(pid) || pids.includes(parentPid))
  const describe = (found: Stat[]) => found.map(({ pid, endedTicks }) => `${pid}:${endedTicks}`).join()
  for (let previous = read(); ; ) {
    const found = read()
    if (describe(found) === describe(previous)) return found
    previous = found
  }
}

/** The CPU time of the children of this process that have exited, in microseconds; null on other systems than Linux. */
export function readEndedCpuTime(): number | null {
  const own = readStat(process.pid)
  return own && (own.endedTicks * 1e6) / ticksPerSecond
}

/** The CPU time of the main thread of a process so far, in microseconds; null on other systems than Linux. */
export function readThreadCpuTime(pid: number): number | null {
  try {
    return Number(readFileSync(`/proc/${pid}/schedstat`, 'utf8').split(' ')[0]) / 1000
  } catch {
    return null
  }
}

/** Why a ratio of CPU times is missing. */
export const noCpuTimes = 'CPU times are read from /proc, which only Linux has.'

/** The CPU time of one operation in each process, in microseconds. */
export function costPerOperation(before: CpuTimes | null, after: CpuTimes | null, operations: number): CpuTimes | null {
  if (!before || !after) return null
  return Object.fromEntries(Object.keys(after).map(name => [name, (after[name]! - before[name]!) / operations]))
}

type Stat = { pid: number; parentPid: number; ticks: number; endedTicks: number }

function readStat(pid: number): Stat | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    // The second field is the name in parentheses, which may contain spaces and parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const sum = (first: number) => Number(fields[first]) + Number(fields[first + 1])
    return { pid, parentPid: Number(fields[1]), ticks: sum(11), endedTicks: sum(13) }
  } catch {
    return null
  }
}
