import { instanceReport } from '@workspace-wallet/contract'
import { expect, test } from 'vitest'
import { createLog } from './create-log.ts'
import { InstanceReporter, type InstanceReporterOptions } from './instance-reporter.ts'
import { faultOf } from './readiness.ts'

const { log } = createLog('test', 'silent')
const never = new Promise<never>(() => {})

function reporterWith(change: Partial<InstanceReporterOptions>): InstanceReporter {
  const health = async () => ({ fault: null, waiting: 0, unhealthyCores: 0 })
  return new InstanceReporter({ version: '1.0.0', health, send: async () => {}, leave: async () => {}, log, ...change })
}

test('reports what core accepts, however long the reason is, and leaves under the same ID', async () => {
  const { promise: sent, resolve: send } = Promise.withResolvers<unknown>()
  const { promise: left, resolve: leave } = Promise.withResolvers<unknown>()
  const health = async () => ({ fault: `nonces: \u0000${'😀'.repeat(500)}`, waiting: 3, unhealthyCores: 1 })
  const reporter = reporterWith({
    health,
    send: async report => send(report),
    leave: async instance => leave(instance),
  })
  reporter.start()
  const report = instanceReport.parse(await sent)
  expect(report).toMatchObject({ instanceId: reporter.instanceId, version: '1.0.0', waiting: 3, unhealthyCores: 1 })
  expect([...report.fault!]).toHaveLength(200)
  await reporter.close()
  expect(await left).toEqual({ instanceId: reporter.instanceId })
})

test('reports a fault again after a second, until it has ended', async () => {
  const faults = ['core: no core has answered yet', null]
  const { promise: healthy, resolve: end } = Promise.withResolvers<void>()
  const reporter = reporterWith({
    health: async () => ({ fault: faults.shift()!, waiting: 0, unhealthyCores: 0 }),
    send: async ({ fault }) => {
      if (fault === null) end()
    },
  })
  reporter.start()
  await healthy
  await reporter.close()
  expect(faults).toEqual([])
})

test.each([
  ['does not answer', { send: () => never, leave: () => never }],
  ['refuses', { send: () => Promise.reject(new Error('refused')), leave: () => Promise.reject(new Error('refused')) }],
])('a program stops although core %s', async (_, calls) => {
  const reporter = reporterWith(calls)
  reporter.start()
  await reporter.close()
})

test('a program that stops before it has started says nothing', async () => {
  const left: unknown[] = []
  await reporterWith({ leave: async instance => left.push(instance) }).close()
  expect(left).toEqual([])
})

test('the fault of a readiness names each part that is down', () => {
  const parts = { core: { up: true }, nonces: { up: false, reason: 'no answer' } } as const
  expect(faultOf({ status: 'not ready', parts })).toBe('nonces: no answer')
  expect(faultOf({ status: 'ready', parts: { core: { up: true } } })).toBeNull()
})
