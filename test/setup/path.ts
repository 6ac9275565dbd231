/** A way over TCP to a server of this machine that fails where a test says: at a byte, or altogether. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'

/** `request` goes to the server, `answer` comes from it. */
export type Direction = 'request' | 'answer'

export type Fault = {
  in: Direction
  /** The bytes that call it, when they pass in one piece or in several. */
  at: string
  /** How much of them still passes. */
  passes: 'none' | 'half' | 'all'
  /** Reset both ends, or let nothing pass in either direction and close nothing. */
  by: 'reset' | 'freeze'
}

export interface Path {
  port: number
  url: string
  /** The same URL by this way. */
  through(url: string): string
  /** Does this to the next connection on which these bytes pass; returns when it is done. */
  fail(fault: Fault): Promise<void>
  /** Nothing passes any more, on any connection, and none is closed. */
  freeze(): void
  /** What was held back passes on every connection. */
  thaw(): void
  /** From now on what is asked arrives, and its answer does not. */
  loseAnswers(): void
  /** How many answers were lost. */
  lost(): number
  /** Resets every connection, and refuses further ones. */
  cut(): void
  /** Takes connections again, and lets answers pass. */
  mend(): Promise<void>
}

export async function openPath(serverPort: number): Promise<Path> {
  const lines = new Set<Line>()
  const armed: Armed[] = []
  let isFrozen = false
  let isLossy = false
  let lost = 0
  const server = createServer(client => {
    const line = new Line(client, connect(serverPort, '127.0.0.1'), armed, () => {
      if (isLossy) lost++
      return isLossy
    })
    lines.add(line)
    client.once('close', () => lines.delete(line))
    if (isFrozen) line.freeze()
  })
  const listen = async (port: number) => {
    server.listen(port, '127.0.0.1')
    await once(server, 'listening')
  }
  await listen(0)
  const { port } = server.address() as AddressInfo

  return {
    port,
    url: `http://127.0.0.1:${port}`,
    through: url => Object.assign(new URL(url), { hostname: '127.0.0.1', port }).href,
    fail: fault => new Promise(resolve => armed.push({ ...fault, done: resolve })),
    freeze() {
      isFrozen = true
      for (const line of lines) line.freeze()
    },
    thaw() {
      isFrozen = false
      for (const line of lines) line.thaw()
    },
    loseAnswers() {
      isLossy = true
    },
    lost: () => lost,
    cut() {
      server.close()
      for (const line of lines) line.reset()
    },
    async mend() {
      isLossy = false
      if (!server.listening) await listen(port)
    },
  }
}

type Armed = Fault & { done: () => void }

/** One connection, both halves of it. */
class Line {
  readonly #client: Socket
  readonly #server: Socket
  readonly #armed: Armed[]
  readonly #isLost: () => boolean
  #held: (() => void)[] | undefined
  /** The end of what has passed, where the beginning of a fault's bytes may be. */
  readonly #tails: Record<Direction, Buffer> = { request: Buffer.alloc(0), answer: Buffer.alloc(0) }

  constructor(client: Socket, server: Socket, armed: Armed[], isLost: () => boolean) {
    this.#client = client
    this.#server = server
    this.#armed = armed
    this.#isLost = isLost
    for (const [from, to, direction] of [
      [client, server, 'request'],
      [server, client, 'answer'],
    ] as const) {
      from.setNoDelay(true)
      from.on('data', bytes => this.#pass(() => this.#carry(bytes, to, direction)))
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

  #carry(bytes: Buffer, to: Socket, direction: Direction): void {
    if (direction === 'answer' && this.#isLost()) {
      this.reset()
      return
    }
    const tail = this.#tails[direction]
    const seen = Buffer.concat([tail, bytes])
    // Bytes that passed before the fault was called for do not call it.
    const placeOf = ({ at }: Fault) => seen.indexOf(at, Math.max(0, tail.length - Buffer.byteLength(at) + 1))
    const fault = this.#armed.find(each => each.in === direction && placeOf(each) >= 0)
    this.#tails[direction] = seen.subarray(-64)
    if (!fault) {
      to.write(bytes)
      return
    }
    this.#armed.splice(this.#armed.indexOf(fault), 1)
    const share = { none: 0, half: 0.5, all: 1 }[fault.passes]
    const passes = placeOf(fault) + Math.floor(Buffer.byteLength(fault.at) * share) - tail.length
    const finish = () => {
      if (fault.by === 'reset') this.reset()
      else {
        this.freeze()
        this.#held!.unshift(() => to.write(bytes.subarray(Math.max(0, passes))))
      }
      fault.done()
    }
    // A reset overtakes what was written and is not sent yet.
    if (passes > 0) to.write(bytes.subarray(0, passes), finish)
    else finish()
  }
}
