import type { KeyRecord } from '@workspace-wallet/contract'
import { CursorPager } from '../../components/cursor-pager.tsx'
import { DataTable, Written } from '../../components/data-table.tsx'
import { KeyLink } from '../../components/links.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Empty } from '../../components/page.tsx'
import { useList } from '../../components/record-list.tsx'
import { Status, Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'

/** A key that is active until a time that has passed has expired. */
export function statusOf({ status, expiresAt }: KeyRecord): KeyRecord['status'] | 'EXPIRED' {
  return status === 'ACTIVE' && expiresAt !== null && expiresAt.getTime() <= Date.now() ? 'EXPIRED' : status
}

const pageSize = 50

/** The keys of a workspace, in order of their creation. */
export function KeysTable({ workspaceId }: { workspaceId: string }) {
  const { keys, fields } = useText()
  const { search } = useList()
  const { after } = search
  const result = useRead('apiKeys.list', {
    workspaceId,
    limit: pageSize,
    ...(typeof after === 'string' && { after }),
  })
  return (
    <Loaded result={result}>
      {({ keys: found, next }) => (
        <>
          <DataTable
            label={keys.keys}
            rows={found}
            rowKey={({ apiKey }) => apiKey}
            empty={<Empty>{keys.empty}</Empty>}
            columns={[
              { label: fields.name, cell: ({ name }) => <Written>{name}</Written> },
              { label: fields.id, cell: ({ apiKey }) => <KeyLink workspaceId={workspaceId} apiKey={apiKey} /> },
              {
                label: fields.status,
                cell: key => (key.isModified ? <Tag tone="bad">{keys.modified}</Tag> : <Status of={statusOf(key)} />),
              },
              { label: keys.owner, cell: ({ ownerUserId }) => <Written>{ownerUserId}</Written> },
              { label: keys.lastUsed, cell: ({ lastUsedAt }) => lastUsedAt && <Time at={lastUsedAt} /> },
              { label: keys.expires, cell: ({ expiresAt }) => expiresAt && <Time at={expiresAt} /> },
            ]}
          />
          <CursorPager next={next} />
        </>
      )}
    </Loaded>
  )
}
