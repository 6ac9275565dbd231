/**
 * Runs a program that must not outlive us, whatever becomes of us.
 *
 * Between us and the program stands a small process of its own, the guard (guard.ts). It holds an IPC channel to us and
 * stops the program when that channel closes, so even a SIGKILL of ours leaves nothing behind. The guard leads its own
 * session: a terminal's Ctrl-C reaches us alone, and we decide in which order things stop.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Child } from './child.ts'

export const guardScript = fileURLToPath(new URL('./guard.ts', import.meta.url))

interface StopStep {
  signal: NodeJS.Signals
  /** How long the program may take to leave after this signal before the next one is sent. */
  patienceMs: number
}

export interface GuardedCommand {
  command: string
  args: string[]
  cwd: string
  env: Record<string, string>
  uid?: number | undefined
  gid?: number | undefined
  /** Sent in this order; SIGKILL follows the last. */
  stopSteps: StopStep[]
  /** Deleted once the program has been stopped by us or because we are gone, but not when it leaves by itself. */
  removeWhenStopped?: string[] | undefined
}

export type ToGuard = { type: 'run'; command: GuardedCommand } | { type: 'stop' } | { type: 'forceStop' }
export type FromGuard =
  | { type: 'started'; pid: number }
  | { type: 'failed'; message: string }
  | { type: 'exited'; reason: string }

/** `pid` is the program's own, and `forceStop` goes on to the next, harsher step. */
export interface Guarded extends Child {
  guard: ChildProcess
  hasExited(): boolean
}

/** Starts `command` under a guard. Its output goes to `output`, a file descriptor. */
export async function runGuarded(command: GuardedCommand, output: number | 'ignore'): Promise<Guarded> {
  // Our own pid stands in the guard's command line so that a later start can tell an orphan from a guard on duty.
  const guard = fork(guardScript, [String(process.pid)], {
    detached: true,
    execArgv: [],
    stdio: ['ignore', output, output, 'ipc'],
  })
  const send = (message: ToGuard) => {
    if (guard.connected) guard.send(message, () => {})
  }

  let ended = false
  const exited = new Promise<string>(resolve => {
    guard.on('message', (message: FromGuard) => {
      if (message.type === 'exited') resolve(message.reason)
    })
    guard.once('exit', (code, signal) => resolve(`its guard ended: ${signal ?? `exit ${code}`}`))
    guard.once('error', error => resolve(error.message))
  })
  void exited.then(() => {
    ended = true
  })

  const started = new Promise<number>((resolve, reject) => {
    guard.on('message', (message: FromGuard) => {
      if (message.type === 'started') resolve(message.pid)
      if (message.type === 'failed') reject(new Error(message.message))
    })
    void exited.then(reason => reject(new Error(`${command.command} could not be started: ${reason}`)))
  })
  send({ type: 'run', command })
  const pid = await started

  return {
    pid,
    guard,
    exited,
    hasExited: () => ended,
    forceStop: () => send({ type: 'forceStop' }),
    async stop() {
      send({ type: 'stop' })
      await exited
    },
  }
}
