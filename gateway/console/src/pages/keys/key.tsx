import { useParams } from '@tanstack/react-router'
import type { KeyRecord } from '@workspace-wallet/contract'
import { Written } from '../../components/data-table.tsx'
import { Facts } from '../../components/facts.tsx'
import { Id } from '../../components/id.tsx'
import { LimitsSection } from '../../components/limits.tsx'
import { WorkspaceLink } from '../../components/links.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Empty, Page } from '../../components/page.tsx'
import { Status, Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'
import { useSession } from '../../session/session.tsx'
import { KeyActions } from './key-actions.tsx'
import { statusOf } from './keys-table.tsx'

/** One key: what it may do, what it has spent, and what an operator can do with it. */
export function KeyPage() {
  const { apiKey } = useParams({ from: '/keys/$apiKey' })
  const { keys } = useText()
  const { mayChange } = useSession()
  const result = useRead('apiKeys.list', { apiKey })
  const key = result.data?.keys[0]
  return (
    <Page
      title={key?.name || keys.key}
      about={<Id value={apiKey} isFull />}
      actions={mayChange && key && <KeyActions record={key} />}
    >
      <Loaded result={result}>
        {() =>
          key ? (
            <>
              <KeyFacts record={key} />
              <LimitsSection workspaceId={key.workspaceId} subject={{ apiKey }} />
            </>
          ) : (
            <Empty>{keys.unknown}</Empty>
          )
        }
      </Loaded>
    </Page>
  )
}

function KeyFacts({ record }: { record: KeyRecord }) {
  const { keys, fields } = useText()
  const { workspaceId, ownerUserId, scopes, ipAllowlist, expiresAt, oldSecretUntil, lastUsedAt } = record
  return (
    <Facts
      facts={[
        [
          fields.status,
          record.isModified ? (
            <Tag key="status" tone="bad">
              {keys.modified}
            </Tag>
          ) : (
            <Status key="status" of={statusOf(record)} />
          ),
        ],
        [keys.owner, <Written key="owner">{ownerUserId}</Written>],
        [fields.workspace, <WorkspaceLink key="workspace" workspaceId={workspaceId} />],
        [keys.scopes, scopes.join(', ')],
        [keys.addresses, ipAllowlist.length === 0 ? keys.anyAddress : ipAllowlist.join(', ')],
        [keys.lastUsed, lastUsedAt ? <Time key="used" at={lastUsedAt} /> : keys.neverUsed],
        [keys.expires, expiresAt ? <Time key="expires" at={expiresAt} /> : keys.neverExpires],
        oldSecretUntil && [keys.oldSecretUntil, <Time key="old" at={oldSecretUntil} />],
        [fields.created, <Time key="created" at={record.createdAt} />],
        [fields.updated, <Time key="updated" at={record.updatedAt} />],
      ]}
    />
  )
}
