import { hasOtherHome } from './database.ts'

/**
 * The value of one series at `url`/metrics; 0 when the metric has no such series yet.
 *
 * @param series name and labels, as Prometheus writes them
 * @throws Error when there is no such metric, so that a misspelled name does not read as 0
 */
export async function readMetric(url: string, series: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  // With two places, the sum of both.
  const lines = (hasOtherHome ? text.replaceAll(/\{place="[^"]*",?/g, '{').replaceAll('{}', '') : text).split('\n')
  const name = series.replace(/\{.*/, '')
  const types = [name, name.replace(/_count$/, '')].map(each => `# TYPE ${each} `)
  if (!lines.some(line => types.some(type => line.startsWith(type)))) throw new Error(`There is no metric ${name}.`)
  const values = lines.flatMap(line => (line.startsWith(`${series} `) ? Number(line.slice(series.length + 1)) : []))
  return values.reduce((sum, value) => sum + value, 0)
}
