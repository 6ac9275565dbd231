import type { Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'

/** How often answers are checked. */
const checkMs = 500
/** How long an answer may wait without any of it being read. */
const stalledMs = 30_000

/** `bytes` wait, since `sinceMs` without any being read. `sentBytes`: of the whole connection. */
type Waiting = { bytes: number; sentBytes: number; sinceMs: number }

/**
 * Limits the memory of answers that their callers do not read: Node keeps what the kernel does not take. When they take more than
 * the limit, the connections are closed of which nothing has been read for longest.
 */
export class UnreadAnswers {
  readonly #limitBytes: number
  /** Connections for batches, and responses that are not sent completely. */
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
    this.#open.set(target, { bytes: 0, sentBytes: 0, sinceMs: 0 })
    target.once('close', () => this.#open.delete(target))
  }

  /** Bytes of answers that wait to be read. */
  get bytes(): number {
    let sum = 0
    for (const target of this.#open.keys()) sum += target.writableLength
    return sum
  }

  #check(nowMs: number): void {
    for (const [target, waiting] of this.#open) {
      // Node emits no `close` for a pipelined response that waits for an earlier one.
      if ('req' in target && target.req.socket.destroyed) this.#open.delete(target)
      const bytes = target.writableLength
      const sentBytes = (target instanceof Socket ? target : target.socket)?.bytesWritten ?? 0
      if (bytes === 0 || bytes !== waiting.bytes || sentBytes !== waiting.sentBytes)
        Object.assign(waiting, { bytes, sentBytes, sinceMs: nowMs })
    }
    let excess = this.bytes - this.#limitBytes
    const longestFirst = [...this.#open].sort(([, a], [, b]) => a.sinceMs - b.sinceMs)
    for (const [target, { bytes, sinceMs }] of longestFirst) {
      const isStalled = nowMs - sinceMs >= stalledMs
      if (bytes === 0 || (excess <= 0 && !isStalled)) continue
      excess -= bytes
      this.closed++
      // Later answers on this connection are closed with it.
      target.destroy()
    }
  }
}
