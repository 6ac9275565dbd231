/** What the load generator does, and what it has measured. */
export type LoadPlan = {
  host: string
  /** Of the gateways, or of one other server. The connections use the next one each time that all signers have one. */
  ports: readonly number[]
  /** With `arrivalsPerSecond`, the maximum. */
  connections: number
  /**
   * Requests arrive at random times at this rate, whether or not earlier ones have a response (open loop). Without it, each
   * connection sends its next request when it has received a response (closed loop).
   */
  arrivalsPerSecond?: number
  warmUpMs: number
  measureMs: number
  /** Each connection takes the next signer. */
  signers: readonly { apiKey: string; apiSecret: string; wallets: string[] }[]
  /**
   * `hot-transfer`: every transfer uses the first wallet of its workspace. `batch`: batches of transfers. `hold-capture`
   * and `transfer-reverse`: by turns, a hold and the transfer that captures it, or a transfer and its reversal. `get` is
   * signed, `plain` is not.
   */
  kind: 'transfer' | 'hot-transfer' | 'batch' | 'hold-capture' | 'transfer-reverse' | 'balance' | 'get' | 'plain'
  /** Path and query of `get` and `plain`. `@wallet@` stands for the first wallet of the signer. */
  target?: string
  /** Several targets, of which the connections take the next one each time that all signers have one. */
  targets?: readonly string[]
  /** Codes of failures that do not fail the benchmark. */
  allowedFailures?: readonly string[]
}

export type LoadResult = {
  perSecond: number
  /** Successful answers during the measurement, and all responses since the first request. */
  answered: number
  total: number
  /** Failures during the measurement by code. */
  failures: Record<string, number>
  /** Of successes. In an open loop, from the time at which the request was to arrive. */
  latencyMs: Latencies
  /** With `arrivalsPerSecond`. */
  openLoop?: OpenLoopResult
}

/** What became of the requests that were to arrive during the measurement. */
export type OpenLoopResult = {
  arrivals: number
  /** Not sent, because each connection had a request in flight. */
  unsent: number
  /** Without a response ten seconds after the last arrival, or with a closed connection. */
  unanswered: number
  failureLatencyMs: Latencies
  /** Failures without the field Retry-After. */
  withoutRetryAfter: number
}

export type Latencies = { p50: number; p95: number; p99: number; max: number }

export function portOf({ ports, signers }: LoadPlan, connection: number): number {
  return ports[Math.floor(connection / signers.length) % ports.length]!
}

export function latenciesOf(milliseconds: number[]): Latencies {
  const sorted = milliseconds.toSorted((a, b) => a - b)
  const at = (share: number) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0
  return { p50: at(0.5), p95: at(0.95), p99: at(0.99), max: at(1) }
}
