import type { Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'

/** How often answers are checked. */
const checkMs = 500
/** How long an answer may wait without any of it being read. */
const stalledMs = 30_000

type Waiting = { bytes: number; sinceMs: number }

/**
 * Limits the memory of answers that their callers do not read: Node keeps what the kernel does not take. When they take more than
 * the limit, the connections of the oldest ones are closed. An answer that is read takes milliseconds, so those are never the
 * oldest.
 */
export class UnreadAnswers {
  readonly #limitBytes: number
  /** Answers that are not sent completely, oldest first. */
  readonly #open = new Map<ServerResponse | Socket, Waiting>()
  /** How many answers were not sent completely because of this. */
  closed = 0

  constructor(server: Server, limitBytes: number) {
    this.#limitBytes = limitBytes
    server.on('request', (_request, response) => this.watch(response))
    const timer = setInterval(() => this.#check(performance.now()), checkMs).unref()
    server.once('close', () => clearInterval(timer))
  }

  /** Watches the answers that are written to a response, or to a connection for batches. */
  watch(target: ServerResponse | Socket): void {
    this.#open.set(target, { bytes: 0, sinceMs: 0 })
    target.once('close', () => this.#open.delete(target))
  }

  /** Bytes of answers that wait to be read. */
  get bytes(): number {
    let sum = 0
    for (const target of this.#open.keys()) sum += target.writableLength
    return sum
  }

  #check(nowMs: number): void {
    let excess = this.bytes - this.#limitBytes
    for (const [target, waiting] of this.#open) {
      // Node emits no `close` for a pipelined response that waits for an earlier one.
      if ('req' in target && target.req.socket.destroyed) this.#open.delete(target)
      const bytes = target.writableLength
      if (bytes === 0 || bytes !== waiting.bytes) Object.assign(waiting, { bytes, sinceMs: nowMs })
      const isStalled = bytes > 0 && nowMs - waiting.sinceMs >= stalledMs
      if (bytes === 0 || (excess <= 0 && !isStalled)) continue
      excess -= bytes
      this.closed++
      // Later answers on this connection are closed with it.
      target.destroy()
    }
  }
}
