import { Button, Group, Text } from '@mantine/core'
import { type Webhook, webhookStatuses } from '@workspace-wallet/contract'
import { useState } from 'react'
import { type Column, Written } from '../../components/data-table.tsx'
import { Id } from '../../components/id.tsx'
import { Empty, Page } from '../../components/page.tsx'
import { filterOf, listSearch, optionalText, RecordList, useList } from '../../components/record-list.tsx'
import { Status } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { InWorkspace } from '../../components/workspace-picker.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'
import { useSession } from '../../session/session.tsx'
import { type WebhookAction, WebhookForm } from './webhook-form.tsx'

export const webhooksSearch = listSearch.extend({ status: optionalText })

const refreshMs = 5_000

/** The webhooks of a workspace, and how far they are behind. */
export function WebhooksPage() {
  const { navigation, webhooks } = useText()
  return (
    <Page title={navigation.webhooks} about={webhooks.about}>
      <InWorkspace>{workspaceId => <Webhooks workspaceId={workspaceId} />}</InWorkspace>
    </Page>
  )
}

function Webhooks({ workspaceId }: { workspaceId: string }) {
  const text = useText()
  const { webhooks, fields } = text
  const { search, request } = useList<'createdAt'>()
  const result = useRead(
    'webhooks.list',
    { workspaceId, filter: filterOf(search, ['status']), ...request },
    { refreshMs },
  )
  const head = useRead('events.read', { workspaceId, after: 'head' }, { refreshMs }).data?.last
  const [action, setAction] = useState<{ name: WebhookAction; webhook: Webhook } | null>(null)
  return (
    <>
      <RecordList
        label={text.navigation.webhooks}
        result={result}
        rowKey={({ webhookId }) => webhookId}
        columns={useColumns(head, (name, webhook) => setAction({ name, webhook }))}
        empty={<Empty>{webhooks.empty}</Empty>}
        fields={[
          { name: 'status', label: fields.status, options: webhookStatuses.map(each => [each, text.statuses[each]]) },
        ]}
      />
      {action && (
        <WebhookForm
          workspaceId={workspaceId}
          webhook={action.webhook}
          action={action.name}
          head={head}
          onClose={() => setAction(null)}
        />
      )}
    </>
  )
}

type Choose = (name: WebhookAction, webhook: Webhook) => void

function useColumns(head: number | undefined, choose: Choose): () => Column<Webhook>[] {
  const { webhooks, fields } = useText()
  const { mayChange } = useSession()
  return () => [
    { label: webhooks.url, cell: ({ url }) => <Written>{url}</Written> },
    { label: fields.id, cell: ({ webhookId }) => <Id value={webhookId} /> },
    { label: fields.status, cell: ({ status }) => <Status of={status} />, sort: 'status' },
    { label: webhooks.position, cell: ({ position }) => position, isNumeric: true },
    {
      label: webhooks.lag,
      cell: ({ position }) => (head === undefined ? '…' : Math.max(0, head - position)),
      isNumeric: true,
    },
    { label: webhooks.lastAttempt, cell: webhook => <LastAttempt webhook={webhook} /> },
    {
      label: fields.actions,
      cell: webhook =>
        mayChange && (
          <Group gap="xs" wrap="nowrap">
            {([webhook.status === 'ACTIVE' ? 'pause' : 'resume', 'seek', 'delete'] as const).map(name => (
              <Button key={name} size="compact-sm" variant="default" onClick={() => choose(name, webhook)}>
                {webhooks.actions[name].name}
              </Button>
            ))}
          </Group>
        ),
    },
  ]
}

function LastAttempt({ webhook: { lastStatus, lastError, lastAttemptAt, failingSince } }: { webhook: Webhook }) {
  const { webhooks } = useText()
  if (!lastAttemptAt) return webhooks.none
  return (
    <>
      <div>
        <Time at={lastAttemptAt} /> – {lastError ? webhooks.errors[lastError] : `HTTP ${lastStatus}`}
      </div>
      {failingSince && (
        <Text c="red" size="sm" className="failing">
          {webhooks.failingSince} <Time at={failingSince} />
        </Text>
      )}
    </>
  )
}
