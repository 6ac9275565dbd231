import { setTimeout as sleep } from 'node:timers/promises'
import { Connection, type Response } from './connection.ts'
import { type LoadPlan, type LoadResult, latenciesOf, portOf } from './plan.ts'
import { Requests } from './requests.ts'

/** How long responses are awaited after the last arrival. */
const drainMs = 10_000

/** `arrivalMs`: when it is to arrive, on the clock of `performance.now()`. Latencies count from there. */
type Arrival = { request: string; arrivalMs: number }

/**
 * Requests arrive in a Poisson process, independently of responses. Each uses an idle connection. If there is none, it
 * counts as not sent.
 *
 * All are signed before the first one, so that signing takes no CPU time from the service while it is measured. They are
 * sent in another order than signed, so they must not depend on each other.
 */
export async function runOpenLoop(plan: LoadPlan): Promise<LoadResult> {
  const { arrivalsPerSecond, warmUpMs, measureMs } = plan
  const offsetsMs = arrivalTimes(arrivalsPerSecond!, warmUpMs + measureMs)
  const sources = plan.signers.map((_, index) => new Requests(plan, index))
  const requests = offsetsMs.map((_, at) => sources[at % sources.length]!.next())
  const tally = new Tally(plan)
  const pool = new ConnectionPool(tally)
  await pool.open(plan)
  const startedAtMs = tally.start()
  for (let next = 0; next < requests.length; await sleep(1)) {
    const elapsedMs = performance.now() - startedAtMs
    for (; next < requests.length && offsetsMs[next]! <= elapsedMs; next++)
      pool.send({ request: requests[next]!, arrivalMs: startedAtMs + offsetsMs[next]! })
  }
  for (const deadlineMs = performance.now() + drainMs; pool.inFlight > 0 && performance.now() < deadlineMs; )
    await sleep(10)
  pool.close()
  return tally.result()
}

/** Random times of a Poisson process, in milliseconds from its start. */
function arrivalTimes(perSecond: number, durationMs: number): number[] {
  const times: number[] = []
  const next = (previous: number) => previous - (Math.log(1 - Math.random()) * 1000) / perSecond
  for (let time = next(0); time < durationMs; time = next(time)) times.push(time)
  return times
}

/** The server accepts one connection per turn of its event loop: more at once could overflow the queue of its kernel. */
const openedAtOnce = 100

class ConnectionPool {
  /** With the request in flight. */
  readonly #connections = new Map<Connection, Arrival | null>()
  /** The last one was used last: as few as possible are used. */
  readonly #idle: Connection[] = []
  readonly #tally: Tally

  constructor(tally: Tally) {
    this.#tally = tally
  }

  async open(plan: LoadPlan): Promise<void> {
    while (this.#connections.size < plan.connections) {
      const opened = []
      for (let count = 0; count < openedAtOnce && this.#connections.size < plan.connections; count++)
        opened.push(this.#add(plan.host, portOf(plan, this.#connections.size)).opened)
      await Promise.all(opened)
    }
  }

  get inFlight(): number {
    return this.#connections.size - this.#idle.length
  }

  send(arrival: Arrival): void {
    const connection = this.#idle.pop()
    if (connection) {
      this.#connections.set(connection, arrival)
      connection.send(arrival.request)
    } else this.#tally.recordUnsent(arrival)
  }

  close(): void {
    for (const [connection, arrival] of this.#connections) {
      if (arrival) this.#tally.recordUnanswered(arrival)
      connection.stop()
    }
  }

  #add(host: string, port: number): Connection {
    const connection = new Connection(host, port, {
      onResponse: response => {
        this.#tally.recordResponse(this.#connections.get(connection)!, response)
        this.#connections.set(connection, null)
        this.#idle.push(connection)
      },
      onClose: () => {
        const arrival = this.#connections.get(connection)
        if (arrival) this.#tally.recordUnanswered(arrival)
        else this.#idle.splice(this.#idle.indexOf(connection), 1)
        this.#connections.delete(connection)
      },
    })
    this.#connections.set(connection, null)
    this.#idle.push(connection)
    return connection
  }
}

/** Counts what arrives during the measurement. */
class Tally {
  readonly #warmUpMs: number
  readonly #measureMs: number
  /** On the clock of `performance.now()`. */
  #fromMs = 0
  readonly #successMs: number[] = []
  readonly #failureMs: number[] = []
  readonly #failures: Record<string, number> = {}
  #arrivals = 0
  #answeredInTime = 0
  #total = 0
  #unsent = 0
  #unanswered = 0
  #withoutRetryAfter = 0

  constructor({ warmUpMs, measureMs }: LoadPlan) {
    this.#warmUpMs = warmUpMs
    this.#measureMs = measureMs
  }

  /** Returns when the warm-up begins: now. */
  start(): number {
    const nowMs = performance.now()
    this.#fromMs = nowMs + this.#warmUpMs
    return nowMs
  }

  recordResponse(arrival: Arrival, { code, hasRetryAfter }: Response): void {
    const nowMs = performance.now()
    this.#total++
    // Successes of earlier arrivals count as well: those of the last ones come after the measurement.
    if (code === '2000' && this.#isMeasured(nowMs)) this.#answeredInTime++
    if (!this.#count(arrival)) return
    const latencyMs = nowMs - arrival.arrivalMs
    if (code === '2000') {
      this.#successMs.push(latencyMs)
      return
    }
    this.#failureMs.push(latencyMs)
    this.#failures[code] = (this.#failures[code] ?? 0) + 1
    if (!hasRetryAfter) this.#withoutRetryAfter++
  }

  recordUnsent(arrival: Arrival): void {
    if (this.#count(arrival)) this.#unsent++
  }

  recordUnanswered(arrival: Arrival): void {
    if (this.#count(arrival)) this.#unanswered++
  }

  result(): LoadResult {
    return {
      perSecond: (this.#answeredInTime * 1000) / this.#measureMs,
      answered: this.#answeredInTime,
      total: this.#total,
      failures: this.#failures,
      latencyMs: latenciesOf(this.#successMs),
      openLoop: {
        arrivals: this.#arrivals,
        unsent: this.#unsent,
        unanswered: this.#unanswered,
        failureLatencyMs: latenciesOf(this.#failureMs),
        withoutRetryAfter: this.#withoutRetryAfter,
      },
    }
  }

  #count({ arrivalMs }: Arrival): boolean {
    if (!this.#isMeasured(arrivalMs)) return false
    this.#arrivals++
    return true
  }

  #isMeasured(timeMs: number): boolean {
    return timeMs >= this.#fromMs && timeMs < this.#fromMs + this.#measureMs
  }
}
