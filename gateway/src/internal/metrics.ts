import { type ErrorCode, errorTable } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import type { BodyReader, HealthChecks, LogOutput } from '@workspace-wallet/runtime'
import { createHistogram } from '@workspace-wallet/runtime/metrics-reader'
import type { Exemplar } from '@workspace-wallet/runtime/tracing'
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import packageJson from '../../package.json' with { type: 'json' }
import { createTransferPath } from '../api/endpoints.ts'
import type { KeyCache } from '../auth/keys/key-cache.ts'
import type { NonceStore } from '../auth/nonces/store.ts'
import type { RequestMetrics } from '../http/app.ts'
import type { ResponseMemory } from '../http/response-memory.ts'
import { stepOf } from '../observability/steps.ts'

/** The codes of creates that miss their objective (deploy/observability/prometheus/rules/objectives.yml). */
const unservedCodes: ErrorCode[] = ['S001', 'S002', 'S003']

export type GatewayMetrics = RequestMetrics & {
  registry: Registry
  /** Exports how many log lines were lost. */
  watchLog: (output: LogOutput) => void
  /** Exports the number of cached keys. */
  watchKeys: (keys: KeyCache) => void
  /** Exports how much memory bodies and responses take. */
  watchMemory: (bodies: BodyReader, responses: ResponseMemory) => void
  /** Exports the queued and sent calls of core, and the number of unhealthy cores. */
  watchCore: (core: CoreClient) => void
  /** Returns the same store, with its response times exported. */
  measureNonceStore: (nonces: NonceStore) => NonceStore
  /** Exports the results of health checks, which run at each scrape. */
  watchHealth: (checks: HealthChecks) => void
}

/** The metrics that Prometheus scrapes on the internal listener. */
export function createMetrics(): GatewayMetrics {
  const registry = new Registry()
  collectDefaultMetrics({ register: registry })
  new Gauge({
    name: 'gateway_build_info',
    help: 'Always 1. Its labels are the versions of the gateway and Node.js',
    labelNames: ['version', 'node'],
    registers: [registry],
  }).set({ version: packageJson.version, node: process.version }, 1)
  const durations = createHistogram(registry, {
    name: 'gateway_request_duration_seconds',
    help: 'Time from the arrival of a public request to its answer, by endpoint and code',
    labelNames: ['route', 'code'],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
  })
  const failures = new Counter({
    name: 'gateway_rejections_total',
    help: 'Failed requests, by the step of the pipeline that failed, code and HTTP status',
    labelNames: ['step', 'code', 'status'],
    registers: [registry],
  })
  // Prometheus does not see the first increase of a series that did not exist before.
  for (const code of unservedCodes) durations.zero({ route: createTransferPath, code })
  /** Cached, because looking up a series by its labels costs more than counting in it. */
  const series = new Map<string, ReturnType<typeof durations.labels>>()

  function observe(route: string, code: string, seconds: number, exemplar: Exemplar | undefined): void {
    if (exemplar) {
      durations.observe({ labels: { route, code }, value: seconds, exemplarLabels: exemplar })
      return
    }
    const name = `${route} ${code}`
    const found = series.get(name) ?? durations.labels(route, code)
    series.set(name, found)
    found.observe(seconds)
  }

  const recordAnswer: RequestMetrics['recordAnswer'] = (route, code, milliseconds, exemplar) => {
    observe(route, code, milliseconds / 1000, exemplar)
    if (code !== '2000') failures.inc({ step: stepOf(code), code, status: String(errorTable[code].http) })
  }

  function watchLog(output: LogOutput): void {
    new Counter({
      name: 'gateway_log_lines_lost_total',
      help: 'Log lines that were lost, because the disk is full, or the reader is slow or has exited',
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
      help: 'API keys in memory: known, known not to exist, and waiting for a look-up',
      labelNames: ['state'],
      registers: [registry],
      collect() {
        for (const [state, count] of Object.entries(keys.counts)) this.set({ state }, count)
      },
    })
  }

  function watchMemory(bodies: BodyReader, responses: ResponseMemory): void {
    new Gauge({
      name: 'gateway_body_bytes',
      help: 'Memory for the bodies of requests in progress that is in use, in bytes: at most BODY_MEMORY_BYTES',
      registers: [registry],
      collect() {
        this.set(bodies.usedBytes)
      },
    })
    new Gauge({
      name: 'gateway_response_bytes',
      help: 'Memory for responses of endpoints that clients have not read yet, in bytes: at most RESPONSE_MEMORY_BYTES',
      registers: [registry],
      collect() {
        this.set(responses.usedBytes)
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
      help: 'Cores that do not respond and are out of rotation',
      registers: [registry],
      collect() {
        this.set(core.load().unhealthyCores)
      },
    })
  }

  const storeDurations = new Histogram({
    name: 'gateway_nonce_store_duration_seconds',
    help: 'Time that the nonce store (Redis) takes to answer, by outcome',
    labelNames: ['outcome'],
    buckets: [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1],
    registers: [registry],
  })
  const answered = storeDurations.labels('answered')
  const failed = storeDurations.labels('failed')

  function measureNonceStore(nonces: NonceStore): NonceStore {
    async function timed<Answer>(answer: Promise<Answer>): Promise<Answer> {
      const startedAt = performance.now()
      try {
        const result = await answer
        answered.observe((performance.now() - startedAt) / 1000)
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

  function watchHealth(checks: HealthChecks): void {
    new Gauge({
      name: 'gateway_part_up',
      help: 'Whether a dependency of the gateway is up: 1 or 0',
      labelNames: ['part'],
      registers: [registry],
      async collect() {
        for (const [part, check] of Object.entries(checks)) this.set({ part }, (await check()) === null ? 1 : 0)
      },
    })
  }

  return { registry, recordAnswer, watchLog, watchKeys, watchMemory, watchCore, measureNonceStore, watchHealth }
}
