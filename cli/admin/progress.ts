/** How far a long command has come, on a terminal; elsewhere nothing. */
export class Progress {
  readonly #stream: NodeJS.WriteStream
  #shown = ''

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  /** @param total null when nobody knows it beforehand */
  show(done: number, total: number | null, what: string): void {
    const line = total === null ? `${done} ${what}` : progressLine(done, total, what)
    if (!this.#stream.isTTY || line === this.#shown) return
    // What follows may be shorter.
    this.#stream.write(`\r${line.padEnd(this.#shown.length)}`)
    this.#shown = line
  }

  clear(): void {
    if (this.#shown !== '') this.#stream.write(`\r${' '.repeat(this.#shown.length)}\r`)
    this.#shown = ''
  }
}

const barLength = 24

/** The numbers have one width throughout, so that each line covers the one before. */
export function progressLine(done: number, total: number, what: string): string {
  const share = total > 0 ? Math.min(1, done / total) : 1
  const bar = '#'.repeat(Math.floor(share * barLength)).padEnd(barLength, '.')
  const percent = String(Math.floor(share * 100)).padStart(3)
  return `[${bar}] ${percent} %  ${String(done).padStart(String(total).length)} of ${total} ${what}`
}
