/** A program of ours that tells its port when it listens. For tests and for the benchmark. */
import type { ChildProcess } from 'node:child_process'
import { spawnNode } from './child.ts'

/** How much of a program's output is printed when it ends by itself, in characters. */
const outputTail = 10_000

/** A running program of ours. */
export type Program = {
  process: ChildProcess
  port: number
  url: string
  /** A gateway's second listener. */
  internalUrl: string
  /** Everything it has written. */
  output(): string
  /** SIGTERM, then its exit code. */
  stop(): Promise<number | null>
  kill(signal: NodeJS.Signals): Promise<void>
}

/**
 * Starts a program of ours and waits until it listens. Its output is in the error when it does not.
 *
 * @param options of Node
 * @param stdout a file for its standard output, which `output()` lacks then
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
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', chunk => (output += chunk))
  const outcome = await Promise.race([ready, exited])
  if (typeof outcome === 'string') throw new Error(`${script} ended before it was ready (${outcome}):\n${output}`)
  const { port, internalPort } = outcome as { port: number; internalPort?: number }
  let isAsked = false
  void exited.then(how => {
    // A test sees only that its calls fail: what ended the program is in the program's own output.
    if (!isAsked) console.error(`${script} ended by itself (${how}):\n${output.slice(-outputTail)}`)
  })
  return {
    process: child,
    port,
    url: `http://127.0.0.1:${port}`,
    internalUrl: `http://127.0.0.1:${internalPort}`,
    output: () => output,
    async stop() {
      isAsked = true
      child.kill('SIGCONT')
      // No deadline: an exit code that a test asserts must not depend on how busy the machine is.
      child.kill('SIGTERM')
      await exited
      return child.exitCode
    },
    async kill(signal) {
      isAsked = true
      child.kill(signal)
      if (signal === 'SIGKILL') await exited
    },
  }
}
