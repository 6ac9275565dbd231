import { type ErrorCode, errorTable } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import type { LogOutput } from '@workspace-wallet/runtime'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import type { KeyCache } from '../auth/keys/key-cache.ts'
import type { NonceStore } from '../auth/nonces/store.ts'
import type { RequestMetrics } from '../http/app.ts'
import type { Parts } from '../observability/readiness.ts'

/** The step of section 5.3 that a code comes from; the rest are refusals of the endpoint, or faults. */
const stepOfCode: Partial<Record<ErrorCode, string>> = {
  GA2001: 'key',
  GA2011: 'key',
  GA2021: 'key-status',
  GA2032: 'workspace',
  GA2034: 'workspace',
  GA2013: 'timestamp-and-nonce',
  GA2012: 'signature',
  GA2022: 'address',
  GA2024: 'scope',
  '50090201': 'scope',
  S029: 'rate-limit',
}

export type Metrics = RequestMetrics & {
  registry: Registry
  /** Shows how many lines of the log were lost. */
  watchLog: (output: LogOutput) => void
  /** Shows what a directory of keys has in memory; read when somebody asks. */
  watchKeys: (keys: KeyCache) => void
  /** Shows the calls of core that wait or are under way, and the cores that owe answers and do not answer. */
  watchCore: (core: CoreClient) => void
  /** The same store, its answers measured. */
  measured: (nonces: NonceStore) => NonceStore
  /** Watches what the gateway cannot serve without; asked when somebody scrapes. */
  watch: (parts: Parts) => void
}

/** What Prometheus scrapes on the internal listener. */
export function createMetrics(): Metrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  const durations = new Histogram({
    name: 'gateway_request_duration_seconds',
    help: 'Time from the arrival of a public request to its answer, by endpoint and code',
    labelNames: ['route', 'code'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
    registers: [registry],
  })
  const refusals = new Counter({
    name: 'gateway_refusals_total',
    help: 'Requests that were not served, by the step of the pipeline that refused them, code and HTTP status',
    labelNames: ['step', 'code', 'status'],
    registers: [registry],
  })
  /** Looking a series up by its labels costs more than counting in it. */
  const series = new Map<string, ReturnType<typeof durations.labels>>()

  function answered(route: string, code: ErrorCode | '2000', milliseconds: number): void {
    const name = `${route} ${code}`
    const found = series.get(name) ?? durations.labels(route, code)
    series.set(name, found)
    found.observe(milliseconds / 1000)
    if (code !== '2000')
      refusals.inc({ step: stepOfCode[code] ?? 'endpoint', code, status: String(errorTable[code].http) })
  }

  function watchLog(output: LogOutput): void {
    new Counter({
      name: 'gateway_log_lines_lost_total',
      help: 'Lines of the log that were lost: the disk is full, or what reads them is slow or gone',
      registers: [registry],
      collect() {
        this.reset()
        this.inc(output.lost)
      },
    })
  }

  function watchKeys(keys: KeyCache): void {
    new Gauge({
      name: 'gateway_keys',
      help: 'API keys in memory: known, known not to exist, and being looked up',
      labelNames: ['state'],
      registers: [registry],
      collect() {
        for (const [state, count] of Object.entries(keys.counts)) this.set({ state }, count)
      },
    })
  }

  function watchCore(core: CoreClient): void {
    new Gauge({
      name: 'gateway_core_calls',
      help: 'Calls of core that wait for a batch, and batches that are in flight',
      labelNames: ['state'],
      registers: [registry],
      collect() {
        const { waiting, inFlight } = core.load()
        this.set({ state: 'waiting' }, waiting)
        this.set({ state: 'in_flight' }, inFlight)
      },
    })
    new Gauge({
      name: 'gateway_unhealthy_cores',
      help: 'Cores that do not respond, and are out of rotation',
      registers: [registry],
      collect() {
        this.set(core.load().unhealthyCores)
      },
    })
  }

  const storeDurations = new Histogram({
    name: 'gateway_nonce_store_duration_seconds',
    help: 'Time that the nonce store (Redis) takes to answer, by what came of it',
    labelNames: ['outcome'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
    registers: [registry],
  })
  const [fine, failed] = [storeDurations.labels('answered'), storeDurations.labels('failed')]

  function measured(nonces: NonceStore): NonceStore {
    async function timed<Answer>(answer: Promise<Answer>): Promise<Answer> {
      const startedAt = performance.now()
      try {
        const result = await answer
        fine.observe((performance.now() - startedAt) / 1000)
        return result
      } catch (error) {
        failed.observe((performance.now() - startedAt) / 1000)
        throw error
      }
    }
    return {
      ...nonces,
      claim: (...claim) => timed(nonces.claim(...claim)),
      isUsed: (...claim) => timed(nonces.isUsed(...claim)),
    }
  }

  function watch(parts: Parts): void {
    new Gauge({
      name: 'gateway_part_up',
      help: 'Whether a part that the gateway cannot serve without is up: 1 or 0',
      labelNames: ['part'],
      registers: [registry],
      async collect() {
        for (const [part, faultOf] of Object.entries(parts)) this.set({ part }, (await faultOf()) === null ? 1 : 0)
      },
    })
  }

  return { registry, answered, watchLog, watchKeys, watchCore, measured, watch }
}
