/** Runs a program of ours that reports its port, for tests and the benchmark. */
import type { ChildProcess } from 'node:child_process'
import { spawnNode } from './child.ts'

/** How much of a program's output is kept, and printed when it exits unexpectedly, in characters. */
const outputLimit = 16 * 1024 * 1024
const outputTail = 10_000

export type Program = {
  process: ChildProcess
  port: number
  url: string
  /** URL of a gateway's internal listener. */
  internalUrl: string
  /** Everything it has written. @throws Error when that was more than the 16 Mi characters that are kept */
  output(): string
  /** Sends SIGTERM and resolves with the exit code. */
  stop(): Promise<number | null>
  kill(signal: NodeJS.Signals): Promise<void>
}

/**
 * Starts a program and waits until it listens.
 *
 * @param options command-line options for Node
 * @param stdout a file descriptor for its standard output, which `output()` then does not contain
 * @throws Error with the program's output, if it exits before it listens
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
  const outcome = await Promise.race([ready, exited])
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
    async stop() {
      isStopping = true
      child.kill('SIGCONT')
      // No deadline: the exit code that a test asserts must not depend on the load of the machine.
      child.kill('SIGTERM')
      await exited
      return child.exitCode
    },
    async kill(signal) {
      isStopping = true
      child.kill(signal)
      if (signal === 'SIGKILL') await exited
    },
  }
}
