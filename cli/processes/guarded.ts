/**
 * Runs a program that must not outlive this process, even if this process is killed.
 *
 * A small process of its own, the guard (guard.ts), starts the program. It holds an IPC channel to this process and stops
 * the program when that channel closes, which also happens after SIGKILL. The guard leads its own session, so a
 * terminal's Ctrl-C reaches only this process, which decides the order in which programs stop.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import type { Child } from './child.ts'

export const guardScript = fileURLToPath(new URL('./guard.ts', import.meta.url))

interface StopStep {
  signal: NodeJS.Signals
  /** How long to wait for the program to exit before the next signal. */
  timeoutMs: number
}

export interface GuardedCommand {
  command: string
  args: string[]
  cwd: string
  env: Record<string, string>
  uid?: number | undefined
  gid?: number | undefined
  /** Signals in order; SIGKILL follows the last one. */
  stopSteps: StopStep[]
  /** Deleted after the program was stopped, on request or because this process exited; kept if it exits by itself. */
  removeWhenStopped?: string[] | undefined
}

export type ToGuard = { type: 'run'; command: GuardedCommand } | { type: 'stop' } | { type: 'forceStop' }
export type FromGuard =
  | { type: 'started'; pid: number }
  | { type: 'failed'; message: string }
  | { type: 'exited'; reason: string }

/** `pid` is the program's, not the guard's. `forceStop` continues with the next stop step at once. */
export interface Guarded extends Child {
  guard: ChildProcess
  hasExited(): boolean
}

/**
 * Starts a command under a guard.
 *
 * @param output the file descriptor for its standard output and error
 * @throws Error when the program cannot be started
 */
export async function runGuarded(command: GuardedCommand, output: number | 'ignore'): Promise<Guarded> {
  // A later start compares this pid with the guard's parent, to tell an orphaned guard from an active one.
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
    guard.once('exit', (code, signal) => resolve(`its guard exited: ${signal ?? `exit ${code}`}`))
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
    void exited.then(reason => reject(new Error(`${command.command} did not start: ${reason}`)))
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
      // Without stop steps, killing it is how it is stopped.
      return (await exited) !== 'SIGKILL' || command.stopSteps.length === 0
    },
  }
}
