import { Histogram, type HistogramConfiguration, Registry } from 'prom-client'
import { shareRuns } from './readiness.ts'

export type MetricsText = { type: string; text: string }

/**
 * Reads metrics for scrapers, once for all that ask at the same time. The format is OpenMetrics if `Accept` names it: only that one
 * has exemplars, which lead to traces. Otherwise it is the text format of Prometheus.
 */
export function createMetricsReader(registry: Registry): (accept: string | undefined) => Promise<MetricsText> {
  const openMetrics = new OpenMetrics(registry)
  const readPrometheus = shareRuns(() => registry.metrics())
  const readOpenMetrics = shareRuns(() => openMetrics.metrics())
  return async accept =>
    openMetricsPattern.test(accept ?? '')
      ? { type: openMetrics.contentType, text: await readOpenMetrics() }
      : { type: registry.contentType, text: await readPrometheus() }
}

const openMetricsPattern = /(^|,)\s*application\/openmetrics-text\s*(;|,|$)/i

/**
 * A histogram with exemplars. prom-client creates none in a registry of the text format of Prometheus, although it leaves them out of
 * that format.
 */
export function createHistogram(registry: Registry, config: HistogramConfiguration<string>): Histogram {
  const histogram = new Histogram({ ...config, enableExemplars: true, registers: [] })
  registry.registerMetric(histogram)
  return histogram
}

/** The metrics of another registry in the other format. */
class OpenMetrics extends Registry<typeof Registry.OPENMETRICS_CONTENT_TYPE> {
  readonly #registry: Registry

  constructor(registry: Registry) {
    super()
    this.setContentType(Registry.OPENMETRICS_CONTENT_TYPE)
    this.#registry = registry
  }

  /** Objects of their own, because prom-client renames counters when it writes this format. `collect` sets the values of the original. */
  override getMetricsAsArray() {
    return this.#registry
      .getMetricsAsArray()
      .map(metric => Object.assign(Object.create(metric), { collect: metric.collect?.bind(metric) }))
  }
}
