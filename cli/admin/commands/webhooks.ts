import { maxWebhooks, type WebhookStatus } from '@workspace-wallet/contract'
import { webhookRecord } from '@workspace-wallet/gateway/records'
import { listOf } from '../../command-line/sentence.ts'
import { command } from '../command.ts'
import { onWorkspace } from '../on-workspace.ts'
import { table } from '../table.ts'
import { parseId, parsePosition } from '../values.ts'
import { reason, workspace } from './id-flags.ts'

const webhook = { value: 'whk_…', help: 'ID of the webhook', required: true, parse: parseId('webhook') } as const

export const webhookCommands = [
  command({
    noun: 'webhook',
    verb: 'list',
    help: 'list the webhooks of a workspace, and how many events each is behind the event log',
    flags: { workspace },
    examples: ['--workspace wsp_…'],
    async run(core, { workspace: workspaceId }) {
      const { content } = await core.webhooks.list.query({ ...onWorkspace(workspaceId), size: maxWebhooks })
      // After the webhooks, so that none is ahead of it.
      const { last } = await core.events.read.query({ ...onWorkspace(workspaceId), after: 'head', size: 1 })
      const { webhookIds: modified } = await core.webhooks.modified.query({ workspaceId })
      return { webhooks: content.map(webhookRecord), last, modified }
    },
    print: ({ webhooks, last, modified }) =>
      [
        webhooks.length > 0 ? printWebhooks(webhooks, last) : 'No webhooks found.',
        ...(modified.length > 0
          ? [`Modified outside the service, and without deliveries: ${listOf(modified)}. Delete them.`]
          : []),
      ].join('\n\n'),
  }),
  statusCommand('pause', 'PAUSED', 'stop the deliveries of a webhook; it keeps its position in the event log'),
  statusCommand(
    'resume',
    'ACTIVE',
    'continue the deliveries of a webhook where they stopped, or retry a failing one at once',
  ),
  command({
    noun: 'webhook',
    verb: 'seek',
    help: 'move a webhook to another position in the event log: back to deliver again, forward to skip events',
    flags: {
      workspace,
      webhook,
      after: {
        value: 'POSITION',
        help: 'deliver the events after this position',
        required: true,
        parse: parsePosition,
      },
      reason,
    },
    examples: ['--workspace wsp_… --webhook whk_… --after 1204'],
    async run(core, { workspace: workspaceId, webhook: webhookId, after, reason }) {
      return webhookRecord(await core.webhooks.seek.mutate({ ...onWorkspace(workspaceId), webhookId, after, reason }))
    },
    print: ({ webhookId, position }) => `Webhook ${webhookId} continues after position ${position}.`,
  }),
  command({
    noun: 'webhook',
    verb: 'delete',
    help: 'delete a webhook; safe to repeat',
    flags: { workspace, webhook, reason },
    examples: ['--workspace wsp_… --webhook whk_…'],
    run: (core, { workspace: workspaceId, webhook: webhookId, reason }) =>
      core.webhooks.delete.mutate({ ...onWorkspace(workspaceId), webhookId, reason }),
    print: ({ webhookId }) => `Deleted webhook ${webhookId}.`,
  }),
]

function statusCommand(verb: string, status: WebhookStatus, help: string) {
  return command({
    noun: 'webhook',
    verb,
    help: `${help}; safe to repeat`,
    flags: { workspace, webhook, reason },
    examples: ['--workspace wsp_… --webhook whk_…'],
    async run(core, { workspace: workspaceId, webhook: webhookId, reason }) {
      return webhookRecord(
        await core.webhooks.update.mutate({ ...onWorkspace(workspaceId), webhookId, status, reason }),
      )
    },
    print: ({ webhookId, status, position }) => `Webhook ${webhookId} is ${status} at position ${position}.`,
  })
}

/** @param last the position at which the event log ends */
function printWebhooks(webhooks: ReturnType<typeof webhookRecord>[], last: number): string {
  const rows = webhooks.map(each => [
    each.webhookId,
    each.status,
    String(each.position),
    String(last - each.position),
    String(each.lastStatus ?? each.lastError ?? '-'),
    each.failingSince ?? '-',
    each.bizId,
    each.url,
  ])
  return table(['WEBHOOK', 'STATUS', 'POSITION', 'BEHIND', 'LAST RESULT', 'FAILING SINCE', 'BIZ ID', 'URL'], rows)
}
