/** The log of the supervisor: on standard output and in a file, each line with its time. */
import { openSync } from 'node:fs'
import { type LogLoss, LogOutput, logLossReason } from '@workspace-wallet/runtime'

export class SupervisorLog {
  readonly #terminal = new LogOutput(1, lossLine)
  #file: LogOutput | undefined

  /** Also writes to this file from now on. */
  openFile(path: string): void {
    this.#file = new LogOutput(openSync(path, 'a', 0o600), lossLine)
  }

  /** Writes one line to both outputs. It must not contain a secret. */
  say(text: string): void {
    const line = withTime(text)
    this.#terminal.write(line)
    this.#file?.write(line)
  }

  /** Writes one line to the file only. */
  note(text: string): void {
    this.#file?.write(withTime(text))
  }

  /** Writes a text to standard output only. It may contain a secret. */
  show(text: string): void {
    this.#terminal.write(`${text}\n`)
  }

  async flush(): Promise<void> {
    await Promise.all([this.#terminal.flush(), this.#file?.flush()])
  }
}

function withTime(text: string): string {
  return `${new Date().toISOString()} ${text}\n`
}

function lossLine({ lost, code }: LogLoss): string {
  return withTime(`${lost} lines of this log were lost: ${logLossReason(code)}`)
}
