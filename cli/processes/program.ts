/** Runs a program of ours that reports its port, for tests and the benchmark. */
import type { ChildProcess } from 'node:child_process'
import { relative } from 'node:path'
import { spawnNode } from './child.ts'

/** How much of a program's output is kept, and printed when it exits unexpectedly, in characters. */
const outputLimit = 16 * 1024 * 1024
const outputTail = 10_000
/** How many of its last lines are printed when somebody waits for it in vain. */
const linesOfTail = 10
/**
 * How long a program may take to listen, and to end. Each takes seconds at most; this only ends what hangs, so that nobody
 * waits for it without knowing its name.
 */
const hangMs = 120_000

/** The programs that run now, by name and pid. */
const running = new Map<string, () => string>()

/** The last lines of every program that runs now: for the error of whoever waits in vain. */
export function describeRunningPrograms(): string {
  return [...running].map(([name, output]) => describeProgram(name, output())).join('\n')
}

function describeProgram(name: string, output: string): string {
  const lines = output.trimEnd().split('\n').slice(-linesOfTail)
  return `${name}; its last lines:\n${lines.map(line => `  ${line}`).join('\n')}`
}

export type Program = {
  process: ChildProcess
  port: number
  url: string
  /** URL of a gateway's internal listener. */
  internalUrl: string
  /** Everything it has written. @throws Error when that was more than the 16 Mi characters that are kept */
  output(): string
  /** Sends SIGTERM and resolves with the exit code. @throws Error if it does not end within two minutes; it is then killed */
  stop(withinMs?: number): Promise<number | null>
  kill(signal: NodeJS.Signals): Promise<void>
}

/**
 * Starts a program and waits until it listens.
 *
 * @param options command-line options for Node
 * @param stdout a file descriptor for its standard output, which `output()` then does not contain
 * @throws Error with the program's output, if it exits before it listens, or does not listen within two minutes
 */
export async function startProgram(
  script: string,
  environment: NodeJS.ProcessEnv,
  options: string[] = [],
  stdout: number | 'pipe' = 'pipe',
): Promise<Program> {
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const env = { PATH, NODE_COMPILE_CACHE, ...environment }
  const { process: child, ready, exited } = spawnNode({ script, options, env }, { stdout, stderr: 'pipe' })
  let output = ''
  let isTruncated = false
  for (const stream of [child.stdout, child.stderr])
    stream?.setEncoding('utf8').on('data', chunk => {
      output += chunk
      if (output.length <= outputLimit) return
      output = output.slice(-outputTail)
      isTruncated = true
    })
  const name = `${relative(process.cwd(), script)} (pid ${child.pid})`
  running.set(name, () => output)
  void exited.then(() => running.delete(name))
  const outcome = await withinDeadline(
    Promise.race([ready, exited]),
    hangMs,
    child,
    `${name} did not listen`,
    () => output,
  )
  if (typeof outcome === 'string') throw new Error(`${script} exited before it was ready (${outcome}):\n${output}`)
  const { port, internalPort } = outcome as { port: number; internalPort?: number }
  let isStopping = false
  void exited.then(how => {
    // A test sees only that its calls fail; the reason is in the program's output.
    if (!isStopping) console.error(`${script} exited unexpectedly (${how}):\n${output.slice(-outputTail)}`)
  })
  return {
    process: child,
    port,
    url: `http://127.0.0.1:${port}`,
    internalUrl: `http://127.0.0.1:${internalPort}`,
    output() {
      // Otherwise a test that looks for a missing line would pass.
      if (isTruncated) throw new Error(`${script} wrote over ${outputLimit} characters: give it a file for its output.`)
      return output
    },
    async stop(withinMs = hangMs) {
      isStopping = true
      child.kill('SIGCONT')
      child.kill('SIGTERM')
      await withinDeadline(exited, withinMs, child, `${name} did not end after SIGTERM`, () => output)
      return child.exitCode
    },
    async kill(signal) {
      isStopping = true
      child.kill(signal)
      if (signal === 'SIGKILL') await exited
    },
  }
}

/** Waits for what a program does. @throws Error at the deadline, when it has killed the program */
async function withinDeadline<Outcome>(
  outcome: Promise<Outcome>,
  withinMs: number,
  child: ChildProcess,
  what: string,
  output: () => string,
): Promise<Outcome> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      reject(new Error(describeProgram(`${what} within ${withinMs / 1000} s, and was killed`, output())))
      child.kill('SIGKILL')
    }, withinMs)
  })
  try {
    return await Promise.race([outcome, late])
  } finally {
    clearTimeout(timer)
  }
}
