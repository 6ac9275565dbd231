/** Facts about running processes, to tell one of ours from an unrelated process that got the same pid. */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

export interface ProcessInfo {
  pid: number
  parentPid: number
  /** The command line, its arguments joined by single spaces. */
  command: string
}

/** Undefined if no such process runs. A zombie (exited, not yet reaped by its parent) does not count as running. */
export async function describeProcess(pid: number): Promise<ProcessInfo | undefined> {
  if (!Number.isSafeInteger(pid) || pid <= 0) return undefined
  return process.platform === 'linux' ? fromProc(pid) : fromPs(pid)
}

async function fromProc(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const [stat, commandLine] = await Promise.all([
      readFile(`/proc/${pid}/stat`, 'utf8'),
      readFile(`/proc/${pid}/cmdline`, 'utf8'),
    ])
    // The second field is the program's name in parentheses, which may contain spaces and parentheses.
    const [state, parentPid] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    if (state === 'Z' || state === 'X') return undefined
    return { pid, parentPid: Number(parentPid), command: commandLine.split('\0').join(' ').trim() }
  } catch {
    return undefined
  }
}

async function fromPs(pid: number): Promise<ProcessInfo | undefined> {
  try {
    const { stdout } = await promisify(execFile)('ps', ['-ww', '-o', 'ppid=,stat=,command=', '-p', String(pid)])
    const [, parentPid, state, command] = /^\s*(\d+)\s+(\S+)\s+(.*)$/m.exec(stdout) ?? []
    if (state === undefined || state.startsWith('Z')) return undefined
    return { pid, parentPid: Number(parentPid), command: command?.trim() ?? '' }
  } catch {
    return undefined
  }
}

/** The user ID of a running process. */
export async function userOf(pid: number): Promise<number> {
  if (process.platform !== 'linux') {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'uid=', '-p', String(pid)])
    return Number(stdout)
  }
  // Not the owner of the directory in /proc, which is root for a process with capabilities.
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^Uid:\t(\d+)/m.exec(status)?.[1])
}

/** The pids of a process and all its descendants, parents before children. */
export async function familyOf(pid: number): Promise<number[]> {
  const parents = process.platform === 'linux' ? await parentsFromProc() : await parentsFromPs()
  const family = [pid]
  for (const member of family) for (const [child, parent] of parents) if (parent === member) family.push(child)
  return family
}

async function parentsFromProc(): Promise<[pid: number, parentPid: number][]> {
  const pids = (await readdir('/proc')).filter(name => /^\d+$/.test(name)).map(Number)
  const found = await Promise.all(pids.map(fromProc))
  return found.flatMap(each => (each ? [[each.pid, each.parentPid]] : []))
}

async function parentsFromPs(): Promise<[pid: number, parentPid: number][]> {
  const { stdout } = await promisify(execFile)('ps', ['-A', '-o', 'pid=,ppid='])
  return stdout
    .trim()
    .split('\n')
    .map(line => line.trim().split(/\s+/).map(Number) as [number, number])
}

/** Sends a signal, and ignores a process that has already exited. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
