import { createCoreClient } from '@workspace-wallet/core-client'
import type pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import type { Program } from '../cli/processes/program.ts'
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

/** Waits for the lines of core's batches that contain a request ID. A slow call has another line. */
function batchesOf(requestId: string): Promise<LogLine[]> {
  return until(`a batch with ${requestId}`, async () => {
    const batches = (await linesOf(system.cores[0]!, requestId)).filter(({ batch }) => batch !== undefined)
    return batches.length > 0 && batches
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
  expect(await batchesOf(requestId)).toEqual([
    expect.objectContaining({ service: 'core', batch: `core ${requestId}`, requestIds: [requestId], rejected: 0 }),
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
  const waitingForLocks = async () => {
    const { rows } = await operator.query(
      `select application_name from pg_stat_activity
       where datname = current_database() and wait_event_type = 'Lock' and application_name like 'core req_%'`,
    )
    return rows.map(row => row.application_name as string)
  }
  const { workspaceId } = system
  const service = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  let job = 0
  // Core waits two seconds for a lock. After a longer stall of this machine, the transfers are repeated.
  const { names, requestId, ids } = await until(
    'one transfer waits for the lock, and three for its batch',
    async () => {
      const ids = ['a', 'b', 'c'].map(name => `job-${job}/${name}`)
      job++
      await blocker.query('begin; select * from ledger for update')
      let isAnswered = false
      const first = call(system, 'POST', createPath, transfer()).finally(() => (isAnswered = true))
      const names = await until('the first transfer waits for the lock', async () => {
        const found = await waitingForLocks()
        return (found.length > 0 || isAnswered) && found
      })
      // Calls that a service makes at the same time are in one batch, and wait in one shard.
      const others = Promise.allSettled(
        ids.map(requestId =>
          service.transfers.create.mutate({ workspaceId, caller: { requestId }, order: transfer() }),
        ),
      )
      await until(
        'the others wait in their shard',
        async () => isAnswered || (await readMetric(system.coreUrl, 'core_postings{state="waiting"}')) === 3,
      )
      await blocker.query('rollback')
      const [{ status, headers }, settled] = await Promise.all([first, others])
      const isMade = status === 200 && settled.every(({ status }) => status === 'fulfilled')
      return isMade && { names, requestId: headers.get('x-request-id'), ids }
    },
  )
  expect(names).toEqual([`core ${requestId}`])
  await service.close()
  expect(await batchesOf(ids[0]!)).toMatchObject([{ batch: `core ${ids[0]}+2`, requestIds: ids, rejected: 0 }])
  await until('idle sessions have the names of their pools', async () => {
    const { rows } = await operator.query(
      `select distinct application_name from pg_stat_activity where usename = 'wallet_service' and datname = current_database()`,
    )
    const found = rows.map(row => row.application_name)
    return ['core ledger', 'core reads'].every(name => found.includes(name))
  })
})
