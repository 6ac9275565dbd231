import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'

/** How often answers are checked. */
const checkMs = 500
/** How long an answer may wait without any of it being read. */
const stalledMs = 30_000

type Watch = {
  /** Who asked for the answers. */
  sender: () => string
  /** What waits takes in memory. */
  weigh: () => number
}

/** Since `sinceMs`, answers wait without any being read: `sentBytes` had been read of the connection. */
type Watched = Watch & { target: ServerResponse | Socket; sentBytes: number; sinceMs: number }

type Waiting = Watched & { bytes: number }

/**
 * Limits the memory of answers that their callers do not read: Node keeps what the kernel does not take. When they take more than
 * the limit, connections of the sender whose answers take most are closed, first those of which nothing has been read for longest.
 * An answer counts as read when the kernel has taken all that was written at once.
 */
export class UnreadAnswers {
  readonly #limitBytes: number
  /** Connections for batches, and responses that are not sent completely. */
  readonly #open = new Map<ServerResponse | Socket, Watched>()
  /** How many answers were not sent completely because of this. */
  closed = 0

  /** @param senderOf who sent a request. Default: all requests are of one sender */
  constructor(server: Server, limitBytes: number, senderOf: (request: IncomingMessage) => string = () => '') {
    this.#limitBytes = limitBytes
    server.on('request', (request, response) => {
      this.watch(response, { sender: () => senderOf(request), weigh: () => response.writableLength })
    })
    const timer = setInterval(() => this.#check(performance.now()), checkMs).unref()
    server.once('close', () => clearInterval(timer))
  }

  /** Watches the answers that are written to a response, or to a connection for batches. */
  watch(target: ServerResponse | Socket, watch: Watch): void {
    this.#open.set(target, { ...watch, target, sentBytes: 0, sinceMs: performance.now() })
    target.once('close', () => this.#open.delete(target))
  }

  /** What answers take that wait to be read. */
  get bytes(): number {
    let sum = 0
    for (const { weigh } of this.#open.values()) sum += weigh()
    return sum
  }

  #check(nowMs: number): void {
    for (const watched of this.#open.values()) {
      const { target } = watched
      // Node emits no `close` for a pipelined response that waits for an earlier one.
      if ('req' in target && target.req.socket.destroyed) this.#open.delete(target)
      const socket = target instanceof Socket ? target : target.socket
      // Node also counts what waits as written.
      const sentBytes = socket ? socket.bytesWritten - socket.writableLength : 0
      if (target.writableLength === 0 || sentBytes !== watched.sentBytes)
        Object.assign(watched, { sentBytes, sinceMs: nowMs })
    }
    const waiting = [...this.#open.values()]
      .map(watched => ({ ...watched, bytes: watched.weigh() }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => a.sinceMs - b.sinceMs)
    const isStalled = ({ sinceMs }: Waiting) => nowMs - sinceMs >= stalledMs
    for (const { target } of waiting.filter(isStalled)) this.#close(target)
    this.#closeExcess(waiting.filter(each => !isStalled(each)))
  }

  /** @param waiting those of which nothing has been read for longest first */
  #closeExcess(waiting: Waiting[]): void {
    const senders = [...Map.groupBy(waiting, ({ sender }) => sender()).values()].map(answers => ({
      answers,
      bytes: sumOf(answers),
    }))
    for (let excess = sumOf(waiting) - this.#limitBytes; excess > 0; ) {
      const largest = senders.reduce((a, b) => (b.bytes > a.bytes ? b : a))
      const { target, bytes } = largest.answers.shift()!
      largest.bytes -= bytes
      excess -= bytes
      this.#close(target)
    }
  }

  #close(target: ServerResponse | Socket): void {
    this.closed++
    // Later answers on this connection are closed with it.
    target.destroy()
  }
}

const sumOf = (answers: Waiting[]) => answers.reduce((sum, { bytes }) => sum + bytes, 0)
