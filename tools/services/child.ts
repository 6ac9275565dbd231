/** Child processes of ours, and programs of ours as such. */
import { type ChildProcess, spawn } from 'node:child_process'
import { type Identity, runAs } from './unprivileged.ts'

/** It does not outlive us. It leads its own session: a terminal's Ctrl-C reaches us alone, and we decide the order. */
export interface Child {
  pid: number
  /** Resolves, never rejects, with how it ended: 'exit 1', 'SIGKILL', … */
  exited: Promise<string>
  stop(): Promise<void>
  /** Makes a stop that is under way wait no longer. */
  forceStop(): void
}

/** A program of ours. */
export interface NodeCommand {
  script: string
  /** Options of Node. */
  options?: string[]
  env: NodeJS.ProcessEnv
  /** Whom it runs as; ourselves when absent. */
  identity?: Identity | undefined
}

export interface NodeChild extends Child {
  process: ChildProcess
  /** Resolves with what it says when it is ready; never when it ends before. */
  ready: Promise<object>
}

type Output = number | 'pipe'

const stopsWithinMs = 10_000

/** The IPC channel ties the child to us: programs of ours leave when it closes. */
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
  const ready = new Promise<object>(resolve => child.once('message', message => resolve(message as object)))
  return {
    process: child,
    pid: child.pid!,
    exited,
    ready,
    forceStop: () => child.kill('SIGKILL'),
    async stop() {
      child.kill('SIGTERM')
      const deadline = setTimeout(() => child.kill('SIGKILL'), stopsWithinMs)
      await exited
      clearTimeout(deadline)
    },
  }
}
