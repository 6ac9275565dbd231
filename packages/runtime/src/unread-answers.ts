import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { networkOf } from './addresses.ts'

/** How often connections are checked. */
const checkMs = 500
/**
 * How long the kernel may take to accept a write completely. Node does not show what it has accepted in part, so this also ends the
 * connections of clients that take longer to read one answer.
 */
const stalledMs = 30_000

/** The sender of a request to a listener that knows no tokens. */
export const senderByNetwork = ({ socket }: IncomingMessage) => networkOf(socket.remoteAddress ?? '')

type Options = {
  /** For all connections. */
  limitBytes: number
  /** Who sent a request. */
  senderOf: (request: IncomingMessage) => string
  /** Called for each response, and each connection for batches, that is closed before everything was sent. */
  onClosed?: (sender: string) => void
}

type Watch = {
  /** Who asked for the answers. */
  sender: () => string
  /** Memory that it takes now, in bytes. */
  weigh: () => number
}

/** Since `sinceMs`, no write was completed. Then, `sentBytes` had been sent on the connection. */
type Watched = Watch & { target: ServerResponse | Socket; sentBytes: number; sinceMs: number }
type Waiting = Watched & { bytes: number }

/**
 * Limits the memory of answers that clients do not read: Node keeps what the kernel does not accept. When they take more than the limit,
 * connections of the sender whose answers take most are closed, those first that have waited for longest.
 */
export class UnreadAnswers {
  readonly #options: Options
  /** Connections for batches, and responses that are not sent completely. */
  readonly #open = new Set<Watched>()
  /** How many responses and connections for batches were closed before everything was sent. */
  closed = 0

  constructor(server: Server, options: Options) {
    this.#options = options
    const { senderOf } = options
    server.on('request', (request, response) => {
      this.watch(response, { sender: () => senderOf(request), weigh: () => response.writableLength })
    })
    const timer = setInterval(() => this.#check(performance.now()), checkMs).unref()
    server.once('close', () => clearInterval(timer))
  }

  /** Watches a response, or a connection for batches. */
  watch(target: ServerResponse | Socket, watch: Watch): void {
    const watched = { ...watch, target, sentBytes: 0, sinceMs: performance.now() }
    this.#open.add(watched)
    target.once('close', () => this.#open.delete(watched))
  }

  /** Memory of all answers that wait to be read, in bytes. */
  get bytes(): number {
    let sum = 0
    for (const { weigh } of this.#open) sum += weigh()
    return sum
  }

  #check(nowMs: number): void {
    for (const watched of this.#open) {
      const { target } = watched
      const socket = socketOf(target)
      // Node emits no `close` for a pipelined response that waits for an earlier one.
      if (socket.destroyed) this.#open.delete(watched)
      // Node also counts what waits as written.
      const sentBytes = socket.bytesWritten - socket.writableLength
      if (target.writableLength === 0 || sentBytes !== watched.sentBytes)
        Object.assign(watched, { sentBytes, sinceMs: nowMs })
    }
    const waiting = [...this.#open]
      .map(watched => ({ ...watched, bytes: watched.weigh() }))
      .filter(({ bytes }) => bytes > 0)
      .sort((a, b) => a.sinceMs - b.sinceMs)
    const isStalled = ({ sinceMs }: Waiting) => nowMs - sinceMs >= stalledMs
    for (const each of waiting.filter(isStalled)) this.#close(each)
    this.#closeExcess(waiting.filter(each => !isStalled(each)))
  }

  /** @param waiting those first that have waited for longest */
  #closeExcess(waiting: Waiting[]): void {
    const senders = [...Map.groupBy(waiting, ({ sender }) => sender()).values()].map(answers => ({
      answers,
      bytes: sumOf(answers),
    }))
    for (let excess = sumOf(waiting) - this.#options.limitBytes; excess > 0; ) {
      const largest = senders.reduce((a, b) => (b.bytes > a.bytes ? b : a))
      const first = largest.answers.shift()!
      largest.bytes -= first.bytes
      excess -= first.bytes
      this.#close(first)
    }
  }

  #close({ target, sender }: Watched): void {
    this.closed++
    this.#options.onClosed?.(sender())
    // Not the response: one that waits behind another on its connection has no socket yet.
    socketOf(target).destroy()
  }
}

const socketOf = (target: ServerResponse | Socket) => (target instanceof Socket ? target : target.req.socket)
const sumOf = (answers: Waiting[]) => answers.reduce((sum, { bytes }) => sum + bytes, 0)
