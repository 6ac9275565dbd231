/** Somebody with the role of the service writes the row of a webhook, and all cores are killed. */
import { idFromUuid, type Uuid } from '@workspace-wallet/contract'
import { query } from '../../cli/processes/database.ts'
import { signalProcess } from '../../cli/processes/processes.ts'
import type { Fault } from './parts/fault.ts'
import type { Testbed } from './testbed.ts'

/**
 * A copy of a genuine row, without its MAC. Its secret needs a key-encryption key that nobody has, it is due before all others,
 * and its position is beyond the log.
 */
const forge = `
  insert into webhook
  select (jsonb_populate_record(w, jsonb_build_object(
    'id', gen_random_uuid(), 'biz_id_mac', '\\x' || encode(sha256(gen_random_uuid()::text::bytea), 'hex'), 'revision', 1,
    'mac', '\\x00', 'secret', 'v1.lost.a.b.c', 'position', 9007199254740991, 'deleted_at', null, 'status', 'ACTIVE',
    'leased_until', '1970-01-01T00:00:00Z', 'next_attempt_at', '1970-01-01T00:00:00Z'))).*
  from webhook w order by random() limit 1
  returning id, workspace_id`

/** Cores start, and deliver the events of the other webhooks. It is over when an operator has deleted the row. */
export function forgedWebhook({ parts, serviceUrl, admin }: Testbed): Fault {
  const cores = parts.filter(({ kind }) => kind === 'core')
  return {
    kind: 'forged webhook',
    what: 'a forged row of a webhook, kill -9 of all cores',
    async inject() {
      const [row] = await query(serviceUrl, forge)
      const webhookId = idFromUuid('webhook', row!.id as Uuid<'webhook'>)
      const workspaceId = idFromUuid('workspace', row!.workspace_id as Uuid<'workspace'>)
      const killed = cores.map(core => ({ core, pid: core.pid() }))
      for (const { pid } of killed) signalProcess(pid, 'SIGKILL')
      const remove = async () => {
        const { webhookIds } = await admin.webhooks.modified.query({ workspaceId })
        if (!webhookIds.includes(webhookId)) return true
        await admin.webhooks.delete.mutate({ workspaceId, caller: { requestId: 'chaos' }, webhookId })
        return true
      }
      return {
        isOver: async () => killed.every(({ core, pid }) => core.pid() !== pid) && (await remove().catch(() => false)),
      }
    },
  }
}
