/**
 * The guard process, forked by guarded.ts. It runs one program and stops it on request, or when the parent process exits:
 * the IPC channel then closes, even after SIGKILL. The guard exits with its program.
 */
import { type ChildProcess, spawn } from 'node:child_process'
import { rm } from 'node:fs/promises'
import { setTimeout as sleep } from 'node:timers/promises'
import type { FromGuard, GuardedCommand, ToGuard } from './guarded.ts'

let program: ChildProcess | undefined
let ended = false
let command: GuardedCommand | undefined
let stopping = false
let nextStep = 0
let stepTimer: NodeJS.Timeout | undefined

function send(message: FromGuard, then?: () => void): void {
  if (process.connected) process.send!(message, undefined, undefined, () => then?.())
  else then?.()
}

function run(requested: GuardedCommand): void {
  command = requested
  program = spawn(command.command, command.args, {
    cwd: command.cwd,
    env: command.env,
    stdio: ['ignore', 'inherit', 'inherit'],
    ...(command.uid === undefined ? {} : { uid: command.uid }),
    ...(command.gid === undefined ? {} : { gid: command.gid }),
  })
  program.once('spawn', () => send({ type: 'started', pid: program!.pid! }))
  program.once('error', error => send({ type: 'failed', message: error.message }, () => end(1)))
  program.once('exit', (code, signal) => void exit(signal ?? `exit ${code}`))
}

async function exit(reason: string): Promise<void> {
  clearTimeout(stepTimer)
  // Before the message, so that the files are gone when the parent's `stop` resolves.
  if (stopping) for (const path of command?.removeWhenStopped ?? []) await remove(path)
  send({ type: 'exited', reason }, () => end(0))
}

/** Without process.exit(), which can hang: see endProgram in packages/runtime. */
function end(exitCode: number): void {
  ended = true
  process.exitCode = exitCode
  clearTimeout(stepTimer)
  if (process.connected) process.disconnect()
}

/** Retries, because other processes that were killed together with the parent may write there for a moment longer. */
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
  if (stopping || ended) return
  stopping = true
  if (program === undefined) end(0)
  else takeNextStep()
}

function takeNextStep(): void {
  clearTimeout(stepTimer)
  const step = command?.stopSteps[nextStep++]
  program?.kill(step?.signal ?? 'SIGKILL')
  if (step) stepTimer = setTimeout(takeNextStep, step.timeoutMs)
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
