/** Prometheus with the configuration of deploy/observability, and the addresses of a test. */
import { cp, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { pickFreePort } from '../../cli/processes/ports.ts'
import { findProgram } from '../../cli/processes/programs.ts'
import { startServer } from '../../cli/processes/server.ts'
import { makeTempDir } from '../setup/temp.ts'
import { directory } from './rules.ts'

export type Sample = { metric: Record<string, string>; value: [number, string] }
export type Prometheus = {
  /** @throws Error if the query is not valid */
  query(expr: string): Promise<Sample[]>
  stop(): Promise<unknown>
}

/**
 * Scrapes and evaluates rules every second.
 *
 * @param targets the address of each target that prometheus.yml names
 */
export async function startPrometheus(targets: Record<string, string>): Promise<Prometheus> {
  const program = await findProgram(['prometheus'], 'prometheus')
  const folder = await makeTempDir('prometheus')
  await cp(join(directory, 'prometheus'), folder, { recursive: true })
  await change(join(folder, 'prometheus.yml'), { ...targets, '15s': '1s', '5s': '1s' })
  await change(join(folder, 'rules/objectives.yml'), { 'interval: 30s': 'interval: 1s' })
  await change(join(folder, 'rules/objectives-long.yml'), { 'interval: 2m': 'interval: 1s' })
  const port = await pickFreePort()
  const args = [
    `--config.file=${join(folder, 'prometheus.yml')}`,
    `--storage.tsdb.path=${join(folder, 'data')}`,
    `--web.listen-address=127.0.0.1:${port}`,
  ]
  const url = `http://127.0.0.1:${port}`
  const server = await startServer(
    { command: program, args, env: {}, stopSteps: [] },
    join(folder, 'log'),
    async () => {
      const response = await fetch(`${url}/-/ready`).catch(() => null)
      return response?.ok ?? false
    },
  )
  return {
    async query(expr) {
      const response = await fetch(`${url}/api/v1/query`, {
        method: 'POST',
        body: new URLSearchParams({ query: expr }),
      })
      const { data, error } = (await response.json()) as { data?: { result: Sample[] }; error?: string }
      if (!data) throw new Error(`${expr}: ${error}`)
      return data.result
    },
    stop: server.stop,
  }
}

async function change(path: string, replacements: Record<string, string>): Promise<void> {
  let text = await readFile(path, 'utf8')
  for (const [from, to] of Object.entries(replacements)) {
    if (!text.includes(from)) throw new Error(`${path} does not contain ${from}`)
    text = text.replaceAll(from, to)
  }
  await writeFile(path, text)
}
