/** Programs of ours as child processes: services that say when they are ready, and tasks that run to their end. */
import { type ChildProcess, spawn } from 'node:child_process'
import { openLog } from './logs.ts'
import { type Identity, runAs } from './unprivileged.ts'

export interface Running {
  pid: number
  /** Resolves, never rejects, with how it ended: 'exit 1', 'SIGKILL', … */
  exited: Promise<string>
  stop(): Promise<void>
  /** Makes a stop that is under way wait no longer. */
  hurry(): void
}

export interface Program {
  name: string
  script: string
  env: NodeJS.ProcessEnv
  logFile: string
  /** Whom it runs as; ourselves when absent. */
  identity?: Identity | undefined
}

const readyWithinMs = 60_000
const stopsWithinMs = 10_000

/** Resolves when the service has sent `{ type: 'ready' }`; rejects, with the end of its log, when it ends before. */
export async function startService(program: Program, signal: AbortSignal): Promise<Running> {
  const { child, exited, tail } = await launch(program, signal)
  const ready = new Promise<'ready'>(resolve => {
    child.on('message', message => {
      if ((message as { type?: string } | null)?.type === 'ready') resolve('ready')
    })
  })
  const tooLate = AbortSignal.timeout(readyWithinMs)
  const giveUp = AbortSignal.any([signal, tooLate])
  const outcome = await Promise.race([ready, exited, aborted(giveUp)])
  if (outcome === 'ready')
    return { pid: child.pid!, exited, hurry: () => child.kill('SIGKILL'), stop: () => stop(child, exited) }

  await stop(child, exited)
  signal.throwIfAborted()
  const what = tooLate.aborted ? `was not ready within ${readyWithinMs / 1000} s` : `did not start (${outcome})`
  throw new Error(`${program.name} ${what}; the end of ${program.logFile}:\n${await tail()}`)
}

/** Runs a program to its end; rejects, with the end of its log, unless that is exit 0. */
export async function runTask(program: Program, signal: AbortSignal): Promise<void> {
  const { child, exited, tail } = await launch(program, signal)
  const outcome = await Promise.race([exited, aborted(signal)])
  await stop(child, exited)
  signal.throwIfAborted()
  if (outcome === 'exit 0') return
  throw new Error(`${program.name} failed (${outcome}); the end of ${program.logFile}:\n${await tail()}`)
}

/**
 * Detached: a session of its own, so that a terminal's Ctrl-C reaches the supervisor alone and things stop in order.
 * The IPC channel is what ties the child to us: it leaves when the channel closes.
 */
async function launch(program: Program, signal: AbortSignal) {
  signal.throwIfAborted()
  const log = await openLog(program.logFile)
  const { command, args, uid, gid } = runAs(program.identity, process.execPath, [program.script])
  const child = spawn(command, args, {
    env: program.env,
    ...(uid === undefined ? {} : { uid }),
    ...(gid === undefined ? {} : { gid }),
    detached: true,
    stdio: ['ignore', log.fd, log.fd, 'ipc'],
  })
  const exited = new Promise<string>(resolve => {
    child.once('exit', (code, ended) => resolve(ended ?? `exit ${code}`))
    child.once('error', error => resolve(error.message))
  })
  await log.close()
  return { child, exited, tail: log.tail }
}

async function stop(child: ChildProcess, exited: Promise<string>): Promise<void> {
  child.kill('SIGTERM')
  const deadline = setTimeout(() => child.kill('SIGKILL'), stopsWithinMs)
  await exited
  clearTimeout(deadline)
}

function aborted(signal: AbortSignal): Promise<'aborted'> {
  return new Promise(resolve => {
    if (signal.aborted) resolve('aborted')
    signal.addEventListener('abort', () => resolve('aborted'), { once: true })
  })
}
