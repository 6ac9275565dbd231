/**
 * The value of one series at `url`/metrics; 0 when the metric has no such series yet.
 *
 * @param series name and labels, as Prometheus writes them
 * @throws Error when there is no such metric, so that a misspelled name does not read as 0
 */
export async function readMetric(url: string, series: string): Promise<number> {
  const lines = (await (await fetch(`${url}/metrics`)).text()).split('\n')
  const name = series.replace(/\{.*/, '')
  const types = [name, name.replace(/_count$/, '')].map(each => `# TYPE ${each} `)
  if (!lines.some(line => types.some(type => line.startsWith(type)))) throw new Error(`There is no metric ${name}.`)
  const line = lines.find(each => each.startsWith(`${series} `))
  return line ? Number(line.slice(series.length + 1)) : 0
}
