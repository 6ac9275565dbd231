/** The programs of a run, which faults kill and freeze. */
import type { Child } from '../../../cli/processes/child.ts'
import { familyOf, signalProcess } from '../../../cli/processes/processes.ts'

/** The last four are those of a cluster of PostgreSQL. */
export type PartKind = 'core' | 'courier' | 'gateway' | 'PostgreSQL' | 'Redis' | 'member' | 'etcd' | 'link' | 'address'

export type Part = {
  name: string
  kind: PartKind
  /** The main process that was last ready. It changes when the supervisor restarts the part. */
  pid(): number
  /** Stops the part in order. */
  stopSignal: NodeJS.Signals
}

/** Starts a part, and again each time that it ends. */
export type Keep = (
  name: string,
  kind: PartKind,
  start: (signal: AbortSignal) => Promise<Child>,
  stopSignal?: NodeJS.Signals,
) => Promise<Part>

/** Stops all processes of the part, the main one first, so that it starts no others. */
export async function freeze(part: Part): Promise<void> {
  const pid = part.pid()
  signalProcess(pid, 'SIGSTOP')
  for (const member of await familyOf(pid)) signalProcess(member, 'SIGSTOP')
}

export async function thaw(part: Part): Promise<void> {
  for (const member of await familyOf(part.pid())) signalProcess(member, 'SIGCONT')
}
