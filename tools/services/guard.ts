/**
 * The guard: forked by guarded.ts, runs one program and stops it when told to, or when the process that forked it is
 * gone (its end of the IPC channel closes then, even after SIGKILL). It outlives its program by nothing.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FromGuard, GuardedCommand, ToGuard } from './guarded.ts'

let program: ChildProcess | undefined
let command: GuardedCommand | undefined
let stopping = false
let nextStep = 0
let timer: NodeJS.Timeout | undefined

function tell(message: FromGuard, then?: () => void): void {
  if (process.connected) process.send!(message, undefined, undefined, () => then?.())
  else then?.()
}

function run(given: GuardedCommand): void {
  command = given
  program = spawn(given.command, given.args, {
    cwd: given.cwd,
    env: given.env,
    stdio: ['ignore', 'inherit', 'inherit'],
    ...(given.uid === undefined ? {} : { uid: given.uid }),
    ...(given.gid === undefined ? {} : { gid: given.gid }),
  })
  program.once('spawn', () => tell({ type: 'started', pid: program!.pid! }))
  program.once('error', error => tell({ type: 'failed', message: error.message }, () => process.exit(1)))
  program.once('exit', (code, signal) => void leave(signal ?? `exit ${code}`))
}

async function leave(reason: string): Promise<void> {
  clearTimeout(timer)
  // Before the report, so that whoever waits for the stop finds the files gone.
  if (stopping) for (const path of command?.removeWhenStopped ?? []) await remove(path)
  tell({ type: 'exited', reason }, () => process.exit(0))
}

/** Others that were killed together with our parent may still be writing there for a moment. */
async function remove(path: string): Promise<void> {
  for (let attempt = 0; attempt < 50; attempt++) {
    try {
      await rm(path, { recursive: true, force: true })
      return
    } catch {
      await sleep(100)
    }
  }
}

function stop(): void {
  if (stopping) return
  stopping = true
  if (program === undefined) process.exit(0)
  takeNextStep()
}

function takeNextStep(): void {
  clearTimeout(timer)
  const step = command?.stopSteps[nextStep++]
  program?.kill(step?.signal ?? 'SIGKILL')
  if (step) timer = setTimeout(takeNextStep, step.patienceMs)
}

process.on('message', (message: ToGuard) => {
  if (message.type === 'run') run(message.command)
  if (message.type === 'stop') stop()
  if (message.type === 'forceStop') {
    if (stopping) takeNextStep()
    else stop()
  }
})
process.on('disconnect', stop)
process.on('SIGTERM', stop)
process.on('SIGINT', stop)
process.on('SIGHUP', stop)
if (!process.connected) stop()
