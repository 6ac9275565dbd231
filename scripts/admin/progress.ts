/** How far a long command has come, on a terminal; elsewhere nothing. */
export class Progress {
  readonly #stream: NodeJS.WriteStream
  #shown = ''

  constructor(stream: NodeJS.WriteStream) {
    this.#stream = stream
  }

  show(done: number, total: number, what: string): void {
    const line = progressLine(done, total, what)
    if (!this.#stream.isTTY || line === this.#shown) return
    this.#shown = line
    this.#stream.write(`\r${line}`)
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
