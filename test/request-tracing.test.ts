import { createCoreClient } from '@workspace-wallet/core-client'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../tools/services/program.ts'
import { call, createPath } from './setup/client.ts'
import { connect } from './setup/database.ts'
import { type LogLine, logLines } from './setup/log-lines.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'

/** With the request ID that a client got, an operator finds the request in the log of each program and in PostgreSQL. */

let system: System
let operator: pg.Client
let blocker: pg.Client
beforeAll(async () => {
  const environment = { LOG_LEVEL: 'info' }
  system = await startSystem({ coreEnvironment: environment, gatewayEnvironment: environment })
  operator = await connect(system.database.ownerUrl)
  blocker = await connect(system.database.ownerUrl)
})
afterAll(async () => {
  await operator?.end()
  await blocker?.end()
  await system?.stop()
})

const transfer = (amount = '0.01') => transferOrder(system, { amount })

/** Waits for log lines that contain a request ID. */
function linesOf(program: Program, requestId: string): Promise<LogLine[]> {
  return until(`a line with ${requestId}`, () => {
    const lines = logLines(program).filter(line => JSON.stringify(line).includes(requestId))
    return lines.length > 0 && lines
  })
}

test('a transfer has one line of the gateway, one of core, and its row', async () => {
  const answer = await call(system, 'POST', createPath, transfer())
  const requestId = answer.headers.get('x-request-id')!
  expect(await linesOf(system.gateways[0]!, requestId)).toEqual([
    expect.objectContaining({
      requestId,
      service: 'gateway',
      method: 'POST',
      route: createPath,
      code: '2000',
      apiKey: system.apiKey,
      address: '127.0.0.1',
      milliseconds: expect.any(Number),
    }),
  ])
  expect(await linesOf(system.cores[0]!, requestId)).toEqual([
    expect.objectContaining({ service: 'core', batch: `core ${requestId}`, requestIds: [requestId], refused: 0 }),
  ])
  const { rows } = await operator.query('select request_id from transfer where request_id = $1', [requestId])
  expect(rows).toHaveLength(1)
})

test('a read and a rejected transfer have a line of the gateway and of core', async () => {
  const read = await call(system, 'GET', `/api/v1/wallets/${system.wallets[0]!.walletId}`)
  const refused = await call(system, 'POST', createPath, transfer('9999999'))
  for (const [answer, path, code] of [
    [read, 'wallets.get', 'ok'],
    [refused, 'transfers.create', 'T002'],
  ] as const) {
    const requestId = answer.headers.get('x-request-id')!
    expect(await linesOf(system.gateways[0]!, requestId)).toMatchObject([{ requestId, code: answer.body.code }])
    await until('its call', async () =>
      (await linesOf(system.cores[0]!, requestId)).some(line => line.path === path && line.code === code),
    )
  }
})

test('a session that waits in PostgreSQL names its request, and the line of a batch names all of its requests', async () => {
  const isWaiting = async (pattern: string) => {
    const { rows } = await operator.query(
      `select application_name from pg_stat_activity where wait_event_type = 'Lock' and application_name like $1`,
      [pattern],
    )
    return rows.map(row => row.application_name as string)
  }
  await blocker.query('begin; select * from ledger for update')
  const first = call(system, 'POST', createPath, transfer())
  const [name] = await until('the first transfer waits for the lock', async () =>
    (await isWaiting('core req_%')).length > 0 ? isWaiting('core req_%') : null,
  )
  // Calls that a service makes at the same time are in one batch, and wait in one shard.
  const { workspaceId } = system
  const service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  const ids = ['a', 'b', 'c'].map(name => `job-17/${name}`)
  const others = ids.map(requestId =>
    service.transfers.create.mutate({ workspaceId, caller: { requestId }, order: transfer() }),
  )
  await until(
    'the others wait in their shard',
    async () => (await readMetric(system.coreUrl, 'core_postings{state="waiting"}')) === 3,
  )
  await blocker.query('rollback')

  expect(name).toBe(`core ${(await first).headers.get('x-request-id')}`)
  await Promise.all(others)
  await service.close()
  const lines = await linesOf(system.cores[0]!, ids[0]!)
  expect(lines).toMatchObject([{ batch: 'core job-17/a+2', requestIds: ids, refused: 0 }])
  const { rows } = await operator.query(
    `select distinct application_name from pg_stat_activity where usename = 'wallet_service' and datname = current_database() order by 1`,
  )
  expect(rows.map(row => row.application_name)).toEqual(expect.arrayContaining(['core ledger', 'core reads']))
})
