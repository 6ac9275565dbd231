import { createLog, SampledLog } from '@workspace-wallet/runtime'
import { Registry } from 'prom-client'
import { expect, test } from 'vitest'
import { Denials } from './denials.ts'

test('denials of more than a thousand keys are counted together', async () => {
  const registry = new Registry()
  const denials = new Denials(registry, new SampledLog(createLog('gateway', 'silent').log))
  for (let at = 0; at < 1_200; at++)
    for (let twice = 0; twice < 2; twice++)
      denials.record({ code: 'GA2012', apiKey: `ak_${at}`, address: '127.0.0.1', requestId: 'req_1' }, false)
  const { values } = await registry.getSingleMetric('gateway_denied_total')!.get()
  expect(values).toHaveLength(1_001)
  expect(values.find(({ labels }) => labels.key === 'other')!.value).toBe(400)
  expect(values.find(({ labels }) => labels.key === 'ak_999')!.value).toBe(2)
})
