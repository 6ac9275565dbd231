import { uuidFromId, type Webhook } from '@workspace-wallet/contract'
import { type CoreClient, createCoreClient } from '@workspace-wallet/core-client'
import { query } from './database.ts'
import type { Receiver } from './receiver.ts'
import type { System } from './system.ts'

const caller = { requestId: 'test' }

/** A workspace's webhooks, through core with a service token. */
export function webhooksOf(system: Pick<System, 'coreUrl' | 'serviceToken' | 'workspaceId' | 'database'>) {
  const { workspaceId, database } = system
  const core: CoreClient = createCoreClient({ url: system.coreUrl, token: system.serviceToken })
  let created = 0
  return {
    /** Creates a webhook that sends to the receiver, and gives the receiver its secret. Returns its ID. */
    async create(
      receiver: Pick<Receiver, 'url' | 'secrets'>,
      options: { concurrency?: number; types?: Webhook['types'] } = {},
    ): Promise<string> {
      const bizId = `test-${Date.now()}-${created++}`
      const input = { workspaceId, caller, bizId, url: receiver.url, ...options }
      const { webhookId, secret } = await core.webhooks.create.mutate(input)
      receiver.secrets.push(secret!)
      return webhookId
    },
    get: (webhookId: string): Promise<Webhook> => core.webhooks.get.query({ workspaceId, caller, webhookId }),
    update: (webhookId: string, changes: { status?: Webhook['status']; url?: string }): Promise<Webhook> =>
      core.webhooks.update.mutate({ workspaceId, caller, webhookId, ...changes }),
    /** Returns the new secret. The old one is no longer used. */
    rotate: async (webhookId: string): Promise<string> =>
      (await core.webhooks.rotate.mutate({ workspaceId, caller, webhookId, graceSeconds: 0 })).secret,
    remove: (webhookId: string) => core.webhooks.delete.mutate({ workspaceId, caller, webhookId }),
    /** The position of the last event of the workspace. */
    head: async (): Promise<number> => (await core.events.read.query({ workspaceId, caller, after: 'head' })).last,
    /** Sets columns that are not signed, in place of waiting. */
    set: (webhookId: string, assignments: string) =>
      query(database.ownerUrl, `update webhook set ${assignments} where id = $1`, [uuidFromId('webhook', webhookId)]),
    /** How many seconds after the last attempt the next one is. */
    async waitSeconds(webhookId: string): Promise<number> {
      const sql =
        'select extract(epoch from next_attempt_at - last_attempt_at)::float8 as wait from webhook where id = $1'
      const [row] = await query(database.ownerUrl, sql, [uuidFromId('webhook', webhookId)])
      return Number(row!.wait)
    },
    close: () => core.close(),
  }
}
export type Webhooks = ReturnType<typeof webhooksOf>
