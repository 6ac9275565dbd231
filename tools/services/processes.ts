/** What is known about a running process, to tell one of ours from a stranger that got the same number. */
import { execFile } from 'node:child_process'
import { readdir, readFile } from 'node:fs/promises'
import { promisify } from 'node:util'

export interface ProcessInfo {
  pid: number
  parentPid: number
  /** The command line, its arguments joined by single spaces. */
  command: string
}

/** Undefined when no such process runs. A zombie (ended, not yet collected by its parent) counts as gone. */
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
    // The second field is the program's name in parentheses and may itself hold spaces and parentheses.
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

/** The user id that a running process has. */
export async function userOf(pid: number): Promise<number> {
  if (process.platform !== 'linux') {
    const { stdout } = await promisify(execFile)('ps', ['-o', 'uid=', '-p', String(pid)])
    return Number(stdout)
  }
  // Not the owner of the directory: for a process with capabilities that is root.
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^Uid:\t(\d+)/m.exec(status)?.[1])
}

/** A process and all that descend from it, parents before their children. */
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

/** Sends a signal; a process that is gone already is fine. */
export function signalProcess(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}
