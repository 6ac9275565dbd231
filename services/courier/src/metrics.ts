import type { CoreClient } from '@workspace-wallet/core-client'
import type { LogOutput } from '@workspace-wallet/runtime'
import { createHistogram } from '@workspace-wallet/runtime/metrics-reader'
import type { Exemplar } from '@workspace-wallet/runtime/tracing'
import { Counter, collectDefaultMetrics, Gauge, type Histogram, Registry } from 'prom-client'
import packageJson from '../package.json' with { type: 'json' }
import { type AttemptResult, attemptResults } from './attempt.ts'
import type { Courier } from './courier.ts'

/** The metrics of the courier, at /metrics of the internal listener. */
export class CourierMetrics {
  readonly registry = new Registry()
  readonly #durations: Histogram

  constructor() {
    const registers = [this.registry]
    collectDefaultMetrics({ register: this.registry })
    new Gauge({
      name: 'courier_build_info',
      help: 'Always 1. Its labels are the versions of the courier and Node.js',
      labelNames: ['version', 'node'],
      registers,
    }).set({ version: packageJson.version, node: process.version }, 1)
    this.#durations = createHistogram(this.registry, {
      name: 'courier_attempt_duration_seconds',
      help: 'Time of an attempt to deliver an event, by result: success, status (other than 2xx), timeout, refused (address not allowed), dns, connection, tls, protocol',
      labelNames: ['result'],
      buckets: [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 15],
    })
    for (const result of attemptResults) this.#durations.zero({ result })
  }

  attempted(result: AttemptResult, milliseconds: number, exemplar: Exemplar | undefined): void {
    this.#durations.observe({ labels: { result }, value: milliseconds / 1000, exemplarLabels: exemplar ?? {} })
  }

  /** Exports what the courier does now, its view of core, and the lost log lines. */
  watch(courier: Courier, core: CoreClient, output: LogOutput): void {
    const registers = [this.registry]
    new Gauge({
      name: 'courier_attempts',
      help: 'Attempts in progress',
      registers,
      collect() {
        this.set(courier.load.attempts)
      },
    })
    new Gauge({
      name: 'courier_leases',
      help: 'Webhooks that this courier delivers to now',
      registers,
      collect() {
        this.set(courier.load.leases)
      },
    })
    new Gauge({
      name: 'courier_part_up',
      help: 'Whether a dependency of the courier is up: 1 or 0',
      labelNames: ['part'],
      registers,
      collect() {
        this.set({ part: 'core' }, courier.fault === null ? 1 : 0)
      },
    })
    new Gauge({
      name: 'courier_unhealthy_cores',
      help: 'Cores that do not respond and are out of rotation',
      registers,
      collect() {
        this.set(core.load().unhealthyCores)
      },
    })
    new Counter({
      name: 'courier_log_lines_lost_total',
      help: 'Log lines that were lost because the disk is full or the reader is slow or gone',
      registers,
      collect() {
        this.reset()
        this.inc(output.lost)
      },
    })
  }
}
