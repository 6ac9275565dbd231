import type { RefusalReport } from '@workspace-wallet/contract'
import type { CoreClient } from '@workspace-wallet/core-client'
import { createLog } from '@workspace-wallet/runtime'
import { Registry } from 'prom-client'
import { afterEach, expect, test, vi } from 'vitest'
import { Refusals } from './refusals.ts'

afterEach(() => vi.useRealTimers())

test('a key has a limited number of refused calls in an hour', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  const reported: RefusalReport[] = []
  const report = { mutate: async ({ refusals }: { refusals: RefusalReport[] }) => void reported.push(...refusals) }
  const core = { refusals: { report } } as unknown as CoreClient
  const refusals = new Refusals(core, new Registry(), createLog('gateway', 'silent').log)
  const call = {
    gateway: 'g',
    method: 'GET',
    route: '/api/v1/wallets',
    code: 'GA2024',
    step: 'scope',
    address: '203.0.113.7',
    requestId: 'req_1',
    isSigned: true,
    describe: () => 'The key has no scope for it.',
  }
  /** 150 reports with 20 calls for each, of which a report takes 10. */
  const recordMany = async (apiKey: string) => {
    for (let reports = 0; reports < 150; reports++) {
      for (let count = 0; count < 20; count++) refusals.record({ ...call, apiKey })
      await refusals.close()
    }
  }
  const reportedOf = (apiKey: string) => reported.filter(each => each.apiKey === apiKey).length
  await recordMany('ak_flood')
  expect(reportedOf('ak_flood')).toBe(1_000)
  refusals.record({ ...call, apiKey: 'ak_other' })
  await refusals.close()
  expect(reportedOf('ak_other')).toBe(1)
  vi.advanceTimersByTime(3_600_000)
  await recordMany('ak_flood')
  expect(reportedOf('ak_flood')).toBe(2_000)
})
