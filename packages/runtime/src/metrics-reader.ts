import { Histogram, type HistogramConfiguration, Registry } from 'prom-client'
import { shareRuns } from './readiness.ts'

export type MetricsText = { type: string; bytes: Buffer }

/**
 * Reads metrics for scrapers, once for all that ask at the same time. They share the bytes: Node would keep a copy of a text for each that
 * reads it slowly. The format is OpenMetrics if `Accept` names it: only that one has exemplars, which lead to traces. Otherwise it is the
 * text format of Prometheus.
 */
export function createMetricsReader(registry: Registry): (accept: string | undefined) => Promise<MetricsText> {
  const openMetrics = new OpenMetrics(registry)
  const readPrometheus = shareRuns(async () => Buffer.from(await registry.metrics()))
  const readOpenMetrics = shareRuns(async () => Buffer.from(await openMetrics.metrics()))
  return async accept =>
    openMetricsPattern.test(accept ?? '')
      ? { type: openMetrics.contentType, bytes: await readOpenMetrics() }
      : { type: registry.contentType, bytes: await readPrometheus() }
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

/** The metrics of several registries, each value with a label that names its registry. */
export class LabelledRegistries extends Registry {
  readonly #label: string
  readonly #registries: ReadonlyMap<string, Registry>

  /** @param registries by the value of their label */
  constructor(label: string, registries: ReadonlyMap<string, Registry>) {
    super()
    this.#label = label
    this.#registries = registries
  }

  override getMetricsAsArray() {
    const labelled = Array.from(this.#registries, ([value, registry]) =>
      registry.getMetricsAsArray().map(metric => ({ value, metric: metric as unknown as Metric })),
    )
    const groups = Map.groupBy(labelled.flat(), ({ metric }) => metric.name)
    return [...groups.values()].map(group => this.#merge(group)) as unknown as ReturnType<Registry['getMetricsAsArray']>
  }

  /** A metric with the values of all. Its name may change, as prom-client changes those of counters in OpenMetrics. */
  #merge(group: { value: string; metric: Metric }[]): Metric {
    const label = this.#label
    const read = async ({ value, metric }: (typeof group)[number]) => {
      const { values } = await (metric.getForPromString?.() ?? metric.get())
      return values.map(each => ({ ...each, labels: { [label]: value, ...each.labels } }))
    }
    const { name, help, type } = group[0]!.metric
    return {
      name,
      help,
      type,
      async get() {
        return { name: this.name, help, type, values: (await Promise.all(group.map(read))).flat() }
      },
    }
  }
}

/** What prom-client's registry uses of a metric. */
type Metric = {
  name: string
  help: string
  type: string
  get(): Promise<MetricValues>
  /** With the series of histograms and summaries, which share the labels of a value. */
  getForPromString?(): Promise<MetricValues>
}
type MetricValues = { name: string; help: string; type: string; values: { labels?: Record<string, string> }[] }
