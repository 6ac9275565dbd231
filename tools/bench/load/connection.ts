import { connect, type Socket } from 'node:net'

export type Response = {
  /** Code of the envelope. A response without an envelope has 2000, or its HTTP status if that is no success. */
  code: string
  hasRetryAfter: boolean
}

export type ConnectionEvents = {
  onResponse: (response: Response) => void
  /** The server or the network has closed the connection. */
  onClose: (error: Error) => void
}

/** A connection with one request in flight. It is a plain socket, which takes less CPU time than an HTTP client. */
export class Connection {
  readonly opened: Promise<void>
  readonly #socket: Socket
  #received = ''
  #isStopped = false

  constructor(host: string, port: number, { onResponse, onClose }: ConnectionEvents) {
    this.#socket = connect({ host, port, noDelay: true })
    const { promise, resolve } = Promise.withResolvers<void>()
    this.opened = promise
    this.#socket.on('connect', resolve)
    this.#socket.setEncoding('latin1')
    this.#socket.on('data', chunk => {
      const response = this.#receive(String(chunk))
      if (response) onResponse(response)
    })
    let error = new Error('The server has closed a connection.')
    this.#socket.on('error', cause => (error = cause))
    this.#socket.on('close', () => {
      if (!this.#isStopped) onClose(error)
    })
  }

  /** Sends a request once the connection is open. */
  send(request: string): void {
    this.#socket.write(request)
  }

  stop(): void {
    this.#isStopped = true
    this.#socket.destroy()
  }

  /** Returns the response once it is complete. */
  #receive(chunk: string): Response | undefined {
    this.#received += chunk
    const end = this.#received.indexOf('\r\n\r\n')
    if (end < 0) return
    const length = /content-length: (\d+)/i.exec(this.#received)
    if (!length || this.#received.length < end + 4 + Number(length[1])) return
    const status = this.#received.slice(9, 12)
    const code = /"code":"([^"]+)"/.exec(this.#received)?.[1] ?? (status.startsWith('2') ? '2000' : status)
    const hasRetryAfter = code !== '2000' && /\r\nretry-after: [1-9]/i.test(this.#received.slice(0, end))
    this.#received = ''
    return { code, hasRetryAfter }
  }
}
