import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Readable, Writable } from 'node:stream'

export type ShellName = 'bash' | 'zsh'

/** Only ends a command that hangs. */
const hangMs = 100_000
const separator = '\u001e'

/** A shell that runs one command after the other, as a reader does who copies them from a page. */
export class Shell {
  readonly #process
  readonly #commands: Writable
  readonly #output: Readable
  #buffer = ''

  constructor(name: ShellName, { cwd, env }: { cwd: string; env: NodeJS.ProcessEnv }) {
    const args = name === 'zsh' ? ['-f', '-s'] : ['-s']
    // A group of its own, so that what it has started in the background ends with it.
    this.#process = spawn(name, args, { cwd, env, stdio: ['pipe', 'pipe', 'inherit'], detached: true })
    this.#commands = this.#process.stdin!
    // If the shell has ended, `run` says so.
    this.#commands.on('error', () => {})
    this.#output = this.#process.stdout!
    this.#output.setEncoding('utf8')
    this.#commands.write('exec 2>&1\n')
  }

  /** What the command prints. @throws Error if it hangs, or ends the shell */
  async run(command: string): Promise<string> {
    // A program that reads its input must not read the next command.
    this.#commands.write(`{ ${command}\n} < /dev/null\nprintf '\\036'\n`)
    const hang = AbortSignal.timeout(hangMs)
    while (!this.#buffer.includes(separator)) {
      const chunk = this.#output.read()
      if (chunk !== null) this.#buffer += chunk
      else if (this.#output.readableEnded)
        throw new Error(`${command}\nhas ended the shell. It printed:\n${this.#buffer}`)
      else await this.#wait(hang)
      if (hang.aborted)
        throw new Error(`${command}\nhas not ended within ${hangMs / 1000} s. It printed:\n${this.#buffer}`)
    }
    const [printed, ...rest] = this.#buffer.split(separator)
    this.#buffer = rest.join(separator)
    return printed!
  }

  /** Waits for output, or its end. */
  async #wait(hang: AbortSignal): Promise<void> {
    const happened = new AbortController()
    const signal = AbortSignal.any([hang, happened.signal])
    const events = ['readable', 'end'].map(name => once(this.#output, name, { signal }).catch(() => {}))
    await Promise.race(events)
    happened.abort()
  }

  /** Ends the shell and everything that it has started. */
  end(): void {
    try {
      process.kill(-this.#process.pid!, 'SIGKILL')
    } catch {
      // It has ended.
    }
  }
}
