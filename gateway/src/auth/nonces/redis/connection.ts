import { createClient } from 'redis'

/** How many checks a connection may leave without any answer, before another one is opened. */
const silentChecksLimit = 5

export type ConnectionOptions = Pick<
  NonNullable<Parameters<typeof createClient>[0]>,
  'url' | 'socket' | 'username' | 'password'
>
type Events = {
  /** The first connection was established. */
  connected?(): void
  failed?(error: unknown): void
  /** From now on, answers may come from another server process. */
  reset?(): void
}

/** A connection to one Redis server, replaced when it fails or does not respond any more. */
export class RedisConnection {
  readonly #options: ConnectionOptions
  readonly #events: Events
  #client
  /** How many checks have begun since the server has answered or the connection has failed. */
  #silentChecks = 0
  #isClosed = false

  constructor(options: ConnectionOptions, events: Events = {}) {
    this.#options = options
    this.#events = events
    this.#client = this.#connect()
  }

  /** @throws Error at once if there is no connection. Without an answer, it waits until there is another connection. */
  send<Reply>(args: string[]): Promise<Reply> {
    return this.#client.sendCommand<Reply>(args)
  }

  /** The server has answered. */
  answered(): void {
    this.#silentChecks = 0
  }

  /**
   * To be called before each regular check. A connection that stays open without an answer may lead to a server or a proxy that is
   * gone for good, so another one is opened. The client itself would keep it for ever.
   */
  checking(): void {
    if (++this.#silentChecks <= silentChecksLimit) return
    this.#silentChecks = 0
    this.#events.reset?.()
    this.#client.destroy()
    this.#client = this.#connect()
  }

  close(): void {
    this.#isClosed = true
    this.#client.destroy()
  }

  #connect() {
    const client = createClient({
      ...this.#options,
      // Without a connection, a command fails at once instead of waiting for one.
      disableOfflineQueue: true,
      socket: {
        ...this.#options.socket,
        connectTimeout: 1_000,
        reconnectStrategy: (attempts: number) => Math.min(50 * 2 ** attempts, 1_000),
      },
      pingInterval: 5_000,
      // Disables CLIENT SETINFO, which the gateway's Redis user may not run (see deploy/containers/secrets.ts).
      disableClientInfo: true,
      // Disables the client's own deadline, which costs a timer and a signal for each command.
      commandOptions: { timeout: 0 },
    })
    client.on('error', error => {
      this.#silentChecks = 0
      if (!this.#isClosed) this.#events.failed?.(error)
    })
    // The client may reconnect to another server.
    client.on('reconnecting', () => {
      this.#silentChecks = 0
      this.#events.reset?.()
    })
    // While the server is down, this retries by itself and does not settle.
    client.connect().then(
      () => this.#events.connected?.(),
      error => {
        if (!this.#isClosed) this.#events.failed?.(error)
      },
    )
    return client
  }
}
