/** What the supervisor says: on its standard output, and in a log file, each line with its time. */
import { openSync } from 'node:fs'
import { type LogLoss, LogOutput, logLossReason } from '@workspace-wallet/runtime'

export class SupervisorLog {
  readonly #terminal = new LogOutput(1, lossLine)
  #file: LogOutput | undefined

  /** From now on lines go to this file, too. */
  openFile(path: string): void {
    this.#file = new LogOutput(openSync(path, 'a', 0o600), lossLine)
  }

  /** One line, without a secret in it. */
  say(text: string): void {
    const line = withTime(text)
    this.#terminal.write(line)
    this.#file?.write(line)
  }

  /** To the file alone: the caller shows it by itself. */
  note(text: string): void {
    this.#file?.write(withTime(text))
  }

  /** As it is, to the person who started us alone: it may hold a secret. */
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
