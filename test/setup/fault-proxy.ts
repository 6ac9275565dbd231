/** A TCP proxy in front of a server of this machine. It fails where a test says: at a byte, or altogether. */
import { connect, createServer, type Socket } from 'node:net'
import { listen } from './listen.ts'

/** `request` goes to the server, `answer` comes from it. */
export type Direction = 'request' | 'answer'

export type Fault = {
  in: Direction
  /** The bytes that trigger it. They may arrive in several pieces. */
  at: string
  /** How much of these bytes still passes. */
  passes: 'none' | 'half' | 'all'
  /** `reset` resets both connections. `freeze` holds everything back in both directions and closes nothing. */
  by: 'reset' | 'freeze'
}

export interface FaultProxy {
  port: number
  url: string
  /** The same URL with the address of the proxy. */
  through(url: string): string
  /** Arms a fault for the next connection on which its bytes pass. Resolves when it has happened. */
  fail(fault: Fault): Promise<void>
  /** Holds everything back on all connections, and closes none. */
  freeze(): void
  /** Forwards what was held back, and everything after it. */
  thaw(): void
  /** From now on requests arrive at the server, and the connection is reset when it answers. */
  loseAnswers(): void
  /** How many answers were lost. */
  lost(): number
  /** Resets all connections and refuses new ones. */
  cut(): void
  /** Disarms faults that did not happen, accepts connections again, and forwards answers again. */
  restore(): Promise<void>
  /** Connects new connections to the server on another port. */
  pointTo(serverPort: number): void
}

export async function startFaultProxy(serverPort: number): Promise<FaultProxy> {
  const connections = new Set<ProxiedConnection>()
  const armed: ArmedFault[] = []
  let target = serverPort
  let isFrozen = false
  let losesAnswers = false
  let lost = 0
  const server = createServer(client => {
    const connection = new ProxiedConnection(client, connect(target, '127.0.0.1'), armed, () => {
      if (losesAnswers) lost++
      return losesAnswers
    })
    connections.add(connection)
    client.once('close', () => connections.delete(connection))
    if (isFrozen) connection.freeze()
  })
  const port = await listen(server)

  return {
    port,
    url: `http://127.0.0.1:${port}`,
    through: url => Object.assign(new URL(url), { hostname: '127.0.0.1', port }).href,
    fail: fault => new Promise(resolve => armed.push({ ...fault, done: resolve })),
    freeze() {
      isFrozen = true
      for (const connection of connections) connection.freeze()
    },
    thaw() {
      isFrozen = false
      for (const connection of connections) connection.thaw()
    },
    loseAnswers() {
      losesAnswers = true
    },
    lost: () => lost,
    cut() {
      server.close()
      for (const connection of connections) connection.reset()
    },
    async restore() {
      armed.length = 0
      losesAnswers = false
      if (!server.listening) await listen(server, port)
    },
    pointTo(next) {
      target = next
    },
  }
}

type ArmedFault = Fault & { done: () => void }

class ProxiedConnection {
  readonly #client: Socket
  readonly #server: Socket
  readonly #armed: ArmedFault[]
  readonly #losesAnswer: () => boolean
  /** What waits for `thaw`; undefined unless the connection is frozen. */
  #held: (() => void)[] | undefined
  /** The last bytes that have passed: those of a fault may begin there. */
  readonly #tails: Record<Direction, Buffer> = { request: Buffer.alloc(0), answer: Buffer.alloc(0) }

  constructor(client: Socket, server: Socket, armed: ArmedFault[], losesAnswer: () => boolean) {
    this.#client = client
    this.#server = server
    this.#armed = armed
    this.#losesAnswer = losesAnswer
    for (const [from, to, direction] of [
      [client, server, 'request'],
      [server, client, 'answer'],
    ] as const) {
      from.setNoDelay(true)
      from.on('data', bytes => this.#pass(() => this.#forward(bytes, to, direction)))
      from.on('end', () => this.#pass(() => to.end()))
      from.on('error', () => {})
      from.on('close', () => this.#pass(() => to.destroy()))
    }
  }

  freeze(): void {
    this.#held ??= []
  }

  thaw(): void {
    const held = this.#held ?? []
    this.#held = undefined
    for (const pass of held) this.#pass(pass)
  }

  reset(): void {
    this.#held = undefined
    this.#client.resetAndDestroy()
    this.#server.resetAndDestroy()
  }

  #pass(pass: () => void): void {
    if (this.#held) this.#held.push(pass)
    else pass()
  }

  #forward(bytes: Buffer, to: Socket, direction: Direction): void {
    if (direction === 'answer' && this.#losesAnswer()) {
      this.reset()
      return
    }
    const tail = this.#tails[direction]
    const recent = Buffer.concat([tail, bytes])
    // A fault is not triggered by bytes that passed before it was armed.
    const positionOf = ({ at }: Fault) => recent.indexOf(at, Math.max(0, tail.length - Buffer.byteLength(at) + 1))
    const fault = this.#armed.find(each => each.in === direction && positionOf(each) >= 0)
    this.#tails[direction] = recent.subarray(-64)
    if (!fault) {
      to.write(bytes)
      return
    }
    this.#armed.splice(this.#armed.indexOf(fault), 1)
    const share = { none: 0, half: 0.5, all: 1 }[fault.passes]
    const passes = positionOf(fault) + Math.floor(Buffer.byteLength(fault.at) * share) - tail.length
    const happen = () => {
      if (fault.by === 'reset') this.reset()
      else {
        this.freeze()
        this.#held!.unshift(() => to.write(bytes.subarray(Math.max(0, passes))))
      }
      fault.done()
    }
    // A reset overtakes bytes that were written and not sent yet.
    if (passes > 0) to.write(bytes.subarray(0, passes), happen)
    else happen()
  }
}
