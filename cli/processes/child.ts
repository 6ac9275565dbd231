/** Runs our own programs as child processes. */
import { type ChildProcess, spawn } from 'node:child_process'
import { type Identity, runAs } from './unprivileged.ts'

/**
 * A child process that ends with this one. It leads its own session, so a terminal's Ctrl-C reaches only this process,
 * which decides the order in which its children stop.
 */
export interface Child {
  pid: number
  /** Resolves with how the process ended: 'exit 1', 'SIGKILL', … Never rejects. */
  exited: Promise<string>
  /** Resolves when the process has ended: true if it ended by itself, false if it had to be killed. */
  stop(): Promise<boolean>
  /** Shortens a stop in progress: does not wait any longer for a clean exit. */
  forceStop(): void
}

export interface NodeCommand {
  script: string
  /** Command-line options for Node. */
  options?: string[]
  env: NodeJS.ProcessEnv
  /** The user to run as (default: the current user). */
  identity?: Identity | undefined
}

export interface NodeChild extends Child {
  process: ChildProcess
  /** Resolves with the message that the program sends when it is ready; stays pending if it exits first. */
  ready: Promise<object>
}

type Output = number | 'pipe'

/** Longer than any of our programs takes to finish its work: a courier takes 16 s. */
export const stopTimeoutMs = 20_000

/** Starts a program of ours with an IPC channel. Our programs exit when the channel closes, so none is orphaned. */
export function spawnNode(command: NodeCommand, output: { stdout: Output; stderr: Output }): NodeChild {
  const { script, options = [], env, identity } = command
  const { command: file, args, uid, gid } = runAs(identity, process.execPath, [...options, script])
  const child = spawn(file, args, {
    env,
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    detached: true,
    stdio: ['ignore', output.stdout, output.stderr, 'ipc'],
  })
  const exited = new Promise<string>(resolve => {
    child.once('exit', (code, signal) => resolve(signal ?? `exit ${code}`))
    child.once('error', error => resolve(error.message))
  })
  let wasKilled = false
  const kill = () => {
    wasKilled = true
    child.kill('SIGKILL')
  }
  const ready = new Promise<object>(resolve => child.once('message', message => resolve(message as object)))
  return {
    process: child,
    pid: child.pid!,
    exited,
    ready,
    forceStop: kill,
    async stop() {
      child.kill('SIGTERM')
      const deadline = setTimeout(kill, stopTimeoutMs)
      await exited
      clearTimeout(deadline)
      return !wasKilled
    },
  }
}
