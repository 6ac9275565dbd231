import { Counter, Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { createMetricsReader } from './metrics-reader.ts'

test.each(['text/plain', 'application/openmetrics-text'])(
  'a counter that is set at each scrape has its value in %s',
  async accept => {
    const registry = new Registry()
    const counter = new Counter({
      name: 'calls_total',
      help: 'Calls',
      labelNames: ['kind'],
      registers: [registry],
      collect() {
        this.reset()
        counter.inc({ kind: 'read' }, 2)
      },
    })
    const read = createMetricsReader(registry)
    for (let scrape = 0; scrape < 2; scrape++)
      expect((await read(accept)).bytes.toString()).toContain('calls_total{kind="read"} 2')
  },
)
