/** Shows the progress of a long command on a terminal. Prints nothing if the stream is not a terminal. */
export class Progress {
  readonly #stream: NodeJS.WriteStream
  #shown = ''

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  /** @param total null if it is not known */
  show(done: number, total: number | null, what: string): void {
    const line = total === null ? `${done} ${what}` : progressLine(done, total, what)
    if (!this.#stream.isTTY || line === this.#shown) return
    // Padded, to overwrite a longer line.
    this.#stream.write(`\r${line.padEnd(this.#shown.length)}`)
    this.#shown = line
  }

  clear(): void {
    if (this.#shown !== '') this.#stream.write(`\r${' '.repeat(this.#shown.length)}\r`)
    this.#shown = ''
  }
}

const barLength = 24

/** Pads the numbers, so that each line has the length of the previous one. */
export function progressLine(done: number, total: number, what: string): string {
  const share = total > 0 ? Math.min(1, done / total) : 1
  const bar = '#'.repeat(Math.floor(share * barLength)).padEnd(barLength, '.')
  const percent = String(Math.floor(share * 100)).padStart(3)
  return `[${bar}] ${percent} %  ${String(done).padStart(String(total).length)} of ${total} ${what}`
}
