/** A standby that was promoted without transfers that were answered: every core notices it before it posts or shows anything. */
import { randomUUID } from 'node:crypto'
import { uuidFromId } from '@workspace-wallet/contract'
import { createCoreClient } from '@workspace-wallet/core-client'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { call, createPath } from './setup/client.ts'
import { execute } from './setup/database.ts'
import { readMetric } from './setup/metrics.ts'
import { transferOrder } from './setup/order.ts'
import { type ReplicatedPostgres, startReplicatedPostgres } from './setup/replicated-postgres.ts'
import { type System, startSystem } from './setup/system.ts'
import { until } from './setup/until.ts'
import { verifyLedger } from './setup/verify.ts'

let postgres: ReplicatedPostgres
let system: System
beforeAll(async () => {
  postgres = await startReplicatedPostgres({ isSynchronous: false })
  system = await startSystem({ database: postgres, cores: 2 })
  await until('the gateway serves', async () => (await codeOf('GET', '/api/v1/wallets')) === '2000')
})
afterAll(async () => {
  await system?.stop()
  await postgres?.stop()
})

const codeOf = async (method: 'GET' | 'POST', path: string, body?: object) =>
  (await call(system, method, path, body)).body.code
const newOrder = () => ({ bizId: `lost-${randomUUID()}`, ...transferOrder(system) })
const find = (bizId: string) => codeOf('GET', `/api/v1/transfer/query/orders/${bizId}`)
const untilPaid = (order: object) =>
  until('the transfer succeeds', async () => (await codeOf('POST', createPath, order)) === '2000')

test('a core that has acknowledged what the new primary lacks refuses it until it is restarted', async () => {
  const kept = newOrder()
  const lost = newOrder()
  await untilPaid(kept)
  // With the password of the service's role: the rows of workspaces that have left are missing on purpose.
  await execute(
    postgres.serviceUrl,
    `insert into workspace_move values ('${uuidFromId('workspace', system.workspaceId)}', 9, 'LEFT', 0, 1, now(), 0, 1, '\\x00')`,
  )
  await until('the standby has it', () => postgres.hasCaughtUp())
  postgres.replication.freeze()
  await untilPaid(lost)
  // Also a change that is not posted: the other core has made no transfer.
  for (const { url } of system.cores) await freezeWallet(url)
  await postgres.failOver()

  await untilRefused()
  for (const core of system.cores) {
    expect((await fetch(`${core.url}/readyz`)).status).toBe(503)
    await until('the log gives the reason', () => core.output().includes('lacks'))
  }
  expect(await find(kept.bizId)).toBe('S002')
  expect(await codeOf('POST', createPath, newOrder())).toBe('S002')

  // An operator has read the log, and decides to go on with what is left.
  for (const core of system.cores) await core.stop()
  for (const { url } of system.cores.splice(0)) await system.startCore({ CORE_PORT: new URL(url).port })
  await until('the service answers', async () => (await find(kept.bizId)) === '2000')
  expect(await find(lost.bizId)).toBe('T001')
  await untilPaid(lost)
  expect((await verifyLedger(system)).brokenRules).toEqual([{ rule: 'move-mac', violations: 1 }])
})

async function freezeWallet(url: string): Promise<void> {
  const { workspaceId, wallets } = system
  const client = createCoreClient({ url, token: system.adminToken })
  const { walletId } = wallets[2]!
  for (const status of ['FROZEN', 'ACTIVE'] as const)
    await client.wallets.changeStatus.mutate({ workspaceId, walletId, status })
  await client.close()
}

async function untilRefused(): Promise<void> {
  const read = ({ url }: { url: string }) => readMetric(url, 'core_database_refused_total{reason="lost_commits"}')
  await until('both cores refuse it', async () => (await Promise.all(system.cores.map(read))).every(count => count > 0))
}
