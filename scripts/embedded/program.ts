/** A program of ours as a child that tells its port when it listens. For tests and for the benchmark. */
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'

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
  program: string,
  environment: NodeJS.ProcessEnv,
  options: string[] = [],
  stdout: number | 'pipe' = 'pipe',
): Promise<Program> {
  const child = spawn(process.execPath, [...options, program], {
    env: { PATH: process.env.PATH, NODE_COMPILE_CACHE: process.env.NODE_COMPILE_CACHE, ...environment },
    stdio: ['ignore', stdout, 'pipe', 'ipc'],
  })
  let output = ''
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', chunk => (output += chunk))
  const exited = once(child, 'exit')
  const ready = await Promise.race([once(child, 'message'), exited.then(() => null)])
  if (!ready) throw new Error(`${program} ended before it was ready:\n${output}`)
  const { port, internalPort } = ready[0] as { port: number; internalPort?: number }
  const isRunning = () => child.exitCode === null && child.signalCode === null
  return {
    process: child,
    port,
    url: `http://127.0.0.1:${port}`,
    internalUrl: `http://127.0.0.1:${internalPort}`,
    output: () => output,
    async stop() {
      if (isRunning()) {
        child.kill('SIGCONT')
        child.kill('SIGTERM')
        await exited
      }
      return child.exitCode
    },
    async kill(signal) {
      child.kill(signal)
      if (signal === 'SIGKILL') await exited
    },
  }
}
