/** Requests of every kind, each once, to a workspace in each of the first two places. */
import { randomUUID } from 'node:crypto'
import { setTimeout as sleep } from 'node:timers/promises'
import { settledAfterMs } from '@workspace-wallet/contract'
import { noAnswerErrorOf } from '@workspace-wallet/core-client'
import { retryUnavailable } from '../../cli/processes/retry.ts'
import { send } from '../chaos/call.ts'
import type { Testbed } from '../chaos/testbed.ts'
import { makeTenant, type Tenant } from '../chaos/traffic.ts'

const timeoutMs = 15_000
/** Of a request that is not served now. */
const attempts = 10

/** @returns what failed */
export async function checkFeatures(testbed: Testbed): Promise<string[]> {
  const failed: string[] = []
  for (const place of [0, 1]) failed.push(...(await checkPlace(testbed, place)))
  return failed
}

/** An attempt whose outcome is unknown leaves a workspace that nothing uses: on a busy machine, cores are taken for unresponsive. */
export async function newTenant(admin: Testbed['admin'], place: number): Promise<Tenant> {
  for (let attempt = 1; ; attempt++)
    try {
      return await retryUnavailable(() => makeTenant(admin, place))
    } catch (error) {
      if (!noAnswerErrorOf(error) || attempt === attempts) throw error
    }
}

async function checkPlace({ admin, gatewayUrls }: Testbed, place: number): Promise<string[]> {
  const failed: string[] = []
  const tenant = await newTenant(admin, place)
  const { workspaceId, signers } = tenant
  const [x, y, z] = tenant.wallets.map(({ walletId }) => walletId) as [string, string, string]
  const call = async (method: 'GET' | 'POST', target: string, body?: object) => {
    let answer = await send(signers[0]!, gatewayUrls[0]!, method, `/api/v1/${target}`, timeoutMs, body)
    for (let attempt = 1; attempt < attempts && answer.kind === 'answer' && answer.code === 'S002'; attempt++) {
      await sleep(answer.retryAfterMs)
      answer = await send(signers[0]!, gatewayUrls[0]!, method, `/api/v1/${target}`, timeoutMs, body)
    }
    if (answer.kind === 'answer' && answer.code === '2000') return answer.data
    failed.push(`place ${place}: ${method} ${target} was answered with ${JSON.stringify(answer)}`)
    return null
  }
  const attempt = async (what: string, act: () => Promise<unknown>) => {
    await retryUnavailable(act).catch(error => failed.push(`place ${place}: ${what} failed: ${error.message}`))
  }
  const order = (amount: string, more: object = {}) => ({
    bizId: randomUUID(),
    sourceWalletId: x,
    targetWalletId: y,
    amount,
    currency: 'USD',
    ...more,
  })
  const first = order('5.00')
  const holdId = randomUUID()
  await call('POST', 'transfer/command/create', first)
  await call('POST', 'transfer/command/create', first)
  await call('POST', 'transfer/command/batch', { transfers: [order('1'), order('2'), order('3')] })
  await call('POST', 'transfer/command/reverse', {
    bizId: randomUUID(),
    reversesTransferId: first.bizId,
    currency: 'USD',
    amount: '1.00',
  })
  const hold = { walletId: x, amount: '10', currency: 'USD' }
  const held = await call('POST', 'hold/command/create', { ...hold, bizId: holdId, expiresInSeconds: 600 })
  await call('POST', 'transfer/command/create', order('4', { holdId: held?.holdId, holdRemainder: 'KEEP' }))
  await call('POST', 'hold/command/release', { holdId: held?.holdId })
  await call('POST', 'hold/command/create', { ...hold, bizId: randomUUID(), expiresInSeconds: 1 })
  await attempt('a limit', () =>
    admin.limits.set.mutate({
      workspaceId,
      subject: { walletId: x },
      currency: 'USD',
      perDay: '100000',
      perTransfer: '1000',
    }),
  )
  await call('POST', 'transfer/command/create', order('2'))
  const settled = new Date(Date.now() - 2 * settledAfterMs).toISOString()
  for (const target of [
    'wallets',
    `wallets/${x}`,
    `wallets/${x}/balance`,
    `wallets/${x}/flows`,
    `wallets/${x}/flows?sort=amount,desc&page=1&size=2`,
    `wallets/${x}/balance/${settled}`,
    `wallets/${x}/statement/2026-01-01/${settled}`,
    'transfer/query/orders',
    'transfer/query/orders?size=2&sort=amount,desc',
    `transfer/query/orders/wallet/${x}`,
    `transfer/query/orders/${first.bizId}`,
    `transfer/query/orders/${first.bizId}/completed`,
    `transfer/query/orders/${first.bizId}/receipt`,
    'hold/query/holds',
    `hold/query/holds/wallet/${x}`,
    `hold/query/holds/${holdId}`,
    'event/query/events/0',
    'webhook/query/webhooks',
  ])
    await call('GET', target)
  const wallet = await call('POST', 'wallet/command/create', { bizId: randomUUID(), currency: 'USD', name: 'new' })
  for (const status of ['FROZEN', 'ACTIVE', 'CLOSED'])
    await call('POST', 'wallet/command/change-status', { walletId: wallet?.walletId ?? z, status })
  await call('POST', 'webhook/command/create', { bizId: randomUUID(), url: 'https://example.com/x', types: [] })
  await attempt('a deposit', () =>
    admin.wallets.deposit.mutate({ workspaceId, walletId: x, amount: '1', bizId: randomUUID() }),
  )
  await attempt('a withdrawal', () =>
    admin.wallets.withdraw.mutate({ workspaceId, walletId: x, amount: '1', bizId: randomUUID() }),
  )
  await attempt('lists of operators', async () => {
    await admin.workspaces.list.query({ limit: 10 })
    await admin.wallets.search.query({ limit: 10 })
    await admin.transfers.search.query({ limit: 10 })
    await admin.audit.list.query({ limit: 10 })
    await admin.system.status.query()
    await admin.system.activity.query({ hours: 1 })
  })
  await attempt('another member, and a key that is disabled', async () => {
    await admin.members.add.mutate({ workspaceId, userId: 'second' })
    await admin.members.remove.mutate({ workspaceId, userId: 'second' })
    await admin.apiKeys.disable.mutate({ apiKey: signers[1]!.apiKey })
  })
  return failed
}
