import { fstatSync, write, writeSync } from 'node:fs'
import { isatty } from 'node:tty'

/** How long lines are collected before they are written: a write per line would cost more than the line. */
const collectMs = 100
/** This many characters are written without waiting for more. */
const chunkLength = 65_536
/** Maximum number of characters that wait for a slow reader. */
const waitingLimit = 4 * 1024 * 1024
/** How long after a failed write the next one is tried. */
const retryMs = 1_000
/** How long the flush at process exit may take, which blocks the process. */
const exitFlushMs = 500

/** Lines that were lost. `code`: the error code of the operating system, or `SLOW_READER`. */
export type LogLoss = { lost: number; code: string }

/**
 * The output of a program's log. It never blocks the program (docs/decisions/0016): one write is in flight at a time.
 * Lines that do not fit in memory meanwhile, or that cannot be written because the disk is full or the reader has exited,
 * are lost, oldest first. Once writing works again, a line reports how many were lost.
 */
export class LogOutput {
  /** Number of lines lost since the program started. */
  lost = 0
  readonly #sink: Sink
  readonly #lineOf: (loss: LogLoss) => string
  #waiting: string[] = []
  #waitingLength = 0
  #writing: Promise<void> | undefined
  #timer: NodeJS.Timeout | undefined
  /** Set after a failed write: the next attempt waits for `retryMs`, not for the next line. */
  #isFailing = false
  /** Losses that were not reported yet, with the code of the last one. */
  #unreported: LogLoss = { lost: 0, code: '' }
  /** Whether the last write ended in the middle of a line. */
  #isTorn = false

  /**
   * @param fd 1 for standard output, or a file
   * @param lineOf formats the line that reports a loss, including the line feed
   */
  constructor(fd: number, lineOf: (loss: LogLoss) => string) {
    this.#sink = fd === 1 && !isFile(fd) ? streamSink() : fileSink(fd)
    this.#lineOf = lineOf
    process.on('exit', () => this.#flushNow())
  }

  /** Writes one line, which includes its line feed. Never blocks, never throws. */
  write(line: string): void {
    if (this.#waitingLength + line.length > waitingLimit) this.#dropOldest()
    this.#waiting.push(line)
    this.#waitingLength += line.length
    if (this.#writing || this.#isFailing) return
    if (this.#waitingLength >= chunkLength) this.#send()
    else this.#sendIn(collectMs)
  }

  /** Writes the waiting lines, for at most `withinMs`. A failed write is not repeated. */
  async flush(withinMs = 1_000): Promise<void> {
    const timeout = Promise.withResolvers<void>()
    const timer = setTimeout(timeout.resolve, withinMs)
    const deadline = performance.now() + withinMs
    while ((this.#waiting.length > 0 || this.#writing) && performance.now() < deadline) {
      this.#send()
      await Promise.race([this.#writing, timeout.promise])
    }
    clearTimeout(timer)
  }

  #sendIn(ms: number): void {
    this.#timer ??= setTimeout(() => this.#send(), ms).unref()
  }

  #send(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#writing || (this.#waiting.length === 0 && this.#unreported.lost === 0)) return
    const chunk = this.#takeChunk()
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#writing = promise
    this.#sink.write(chunk.bytes, (code, written) => {
      this.#writing = undefined
      this.#settle(chunk, code, written)
      resolve()
      if (this.#isFailing) this.#sendIn(retryMs)
      else if (this.#waiting.length > 0) this.#sendIn(collectMs)
    })
  }

  #takeChunk(): Chunk {
    const { lost } = this.#unreported
    const head = (this.#isTorn ? '\n' : '') + (lost > 0 ? this.#lineOf({ ...this.#unreported }) : '')
    const lines = this.#waiting
    this.#waiting = []
    this.#waitingLength = 0
    return {
      bytes: Buffer.from(head + lines.join('')),
      headBytes: Buffer.byteLength(head),
      lines: lines.length,
      reported: lost,
    }
  }

  #settle(chunk: Chunk, code: string | null, written: number): void {
    if (written >= chunk.headBytes) this.#unreported.lost -= chunk.reported
    if (written > 0) this.#isTorn = chunk.bytes[written - 1] !== lineFeed
    this.#isFailing = code !== null
    if (code === null) return
    const whole = chunk.bytes.subarray(chunk.headBytes, written).reduce((sum, byte) => sum + +(byte === lineFeed), 0)
    this.#lose(chunk.lines - whole, code)
  }

  #lose(lines: number, code: string): void {
    this.lost += lines
    this.#unreported = { lost: this.#unreported.lost + lines, code }
  }

  /** Drops half of the lines at once, because the reader is far behind. */
  #dropOldest(): void {
    const dropped = this.#waiting.splice(0, Math.ceil(this.#waiting.length / 2))
    this.#waitingLength -= dropped.reduce((sum, line) => sum + line.length, 0)
    if (dropped.length > 0) this.#lose(dropped.length, 'SLOW_READER')
  }

  /** Synchronous, because a process that exits runs no asynchronous code. */
  #flushNow(): void {
    if (this.#sink.isBusy() || this.#waiting.length === 0) return
    this.#sink.writeNow(this.#takeChunk().bytes, exitFlushMs)
  }
}

type Chunk = { bytes: Buffer; headBytes: number; lines: number; reported: number }

/** `code`: that of an error, or null. `written`: how many bytes were certainly written. */
type Written = (code: string | null, written: number) => void

type Sink = {
  write(bytes: Buffer, done: Written): void
  writeNow(bytes: Buffer, withinMs: number): void
  /** Whether earlier bytes may still be waiting. */
  isBusy(): boolean
}

const lineFeed = 0x0a

function isFile(fd: number): boolean {
  const stat = fstatSync(fd)
  return !stat.isFIFO() && !stat.isSocket() && !isatty(fd)
}

/** A pipe, a socket or a terminal. */
function streamSink(): Sink {
  // Node makes terminals blocking: Ctrl-S would stop the program.
  for (const stream of [process.stdout, process.stderr]) {
    const { _handle: handle } = stream as { _handle?: { setBlocking?(isBlocking: boolean): void } }
    handle?.setBlocking?.(false)
    // Without a listener, an error would end the process. `write` reports it as well.
    stream.on('error', () => {})
  }
  return {
    write: (bytes, done) =>
      void process.stdout.write(bytes, error => done(error ? codeOf(error) : null, error ? 0 : bytes.length)),
    writeNow: (bytes, withinMs) => writeAllNow(1, bytes, withinMs),
    isBusy: () => process.stdout.writableLength > 0,
  }
}

/** A file or a device. It is written in Node's thread pool, because a disk may be slow. */
function fileSink(fd: number): Sink {
  function writeFrom(bytes: Buffer, at: number, done: Written): void {
    write(fd, bytes, at, bytes.length - at, null, (error, count) => {
      if (error) done(codeOf(error), at)
      else if (at + count < bytes.length) writeFrom(bytes, at + count, done)
      else done(null, bytes.length)
    })
  }
  return {
    write: (bytes, done) => writeFrom(bytes, 0, done),
    writeNow: (bytes, withinMs) => writeAllNow(fd, bytes, withinMs),
    isBusy: () => false,
  }
}

function writeAllNow(fd: number, bytes: Buffer, withinMs: number): void {
  const deadline = performance.now() + withinMs
  for (let at = 0; at < bytes.length && performance.now() < deadline; )
    try {
      at += writeSync(fd, bytes, at)
    } catch (error) {
      if (codeOf(error) !== 'EAGAIN') return
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10)
    }
}

function codeOf(error: unknown): string {
  return (error as NodeJS.ErrnoException).code ?? 'UNKNOWN'
}
