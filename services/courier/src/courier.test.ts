import { randomUUID } from 'node:crypto'
import type { CoreClient } from '@workspace-wallet/core-client'
import { createLog } from '@workspace-wallet/runtime'
import { test } from 'vitest'
import { until } from '../../../test/setup/until.ts'
import { Courier } from './courier.ts'

type LeaseInput = { size: number; except: string[] | null }
type Webhook = { webhookId: string; workspaceId: string }

const webhooksOf = (workspaceId: string, count: number): Webhook[] =>
  Array.from({ length: count }, (_, at) => ({ webhookId: `${workspaceId}-${at}`, workspaceId }))

/** The part of core that leases webhooks, each of which always has an event to deliver. `onNone`: called when it leases none. */
function coreWith(webhooks: Webhook[], onNone: () => void): CoreClient {
  const held = new Set<string>()
  const lease = ({ size, except }: LeaseInput) => {
    const leased: Webhook[] = []
    for (const webhook of webhooks) {
      const { webhookId, workspaceId } = webhook
      const isLeftOut = except && [...except, ...leased.map(each => each.workspaceId)].includes(workspaceId)
      if (leased.length < size && !held.has(webhookId) && !isLeftOut) leased.push(webhook)
    }
    for (const { webhookId } of leased) held.add(webhookId)
    if (leased.length === 0) onNone()
    const deliveries = [{ position: 1, body: '{}', headers: {} }]
    const common = { url: 'https://a.example', concurrency: 1, leaseMs: 60_000, deliveries }
    return { revoked: [], webhooks: leased.map(each => ({ ...each, ...common, generation: randomUUID() })) }
  }
  const report = ({ webhookId }: { webhookId: string }) => ({ accepted: held.delete(webhookId) })
  const courier = {
    lease: { mutate: async (input: LeaseInput) => lease(input) },
    report: { mutate: async (input: { webhookId: string }) => report(input) },
  }
  return { courier } as unknown as CoreClient
}

test.each([6, 12, 30])(
  'while many workspaces have as many leases as they may, another one is delivered: %i',
  async count => {
    const webhooks = Array.from({ length: count }, (_, at) => webhooksOf(`slow-${at}`, 16)).flat()
    const [full, ending] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
    let delivered = 0
    const outcome = { result: 'success', status: 204, retryAfterSeconds: null, code: null } as const
    const courier = new Courier({
      core: coreWith(webhooks, full.resolve),
      limit: 256,
      attempt: async ({ workspaceId }) => {
        if (workspaceId === 'other') delivered++
        else await ending.promise
        return outcome
      },
      log: createLog('test', 'silent').log,
    })
    courier.start()
    // They have as many leases as they may.
    await full.promise
    webhooks.push(...webhooksOf('other', 1))
    await until('it is delivered again and again', () => delivered > 3)
    ending.resolve()
    await courier.stop()
  },
)
