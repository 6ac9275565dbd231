import { Button, TextInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { WorkspaceRecord } from '@workspace-wallet/contract'
import { useState } from 'react'
import { z } from 'zod'
import { ActionForm } from '../../components/action-form.tsx'
import { CursorPager } from '../../components/cursor-pager.tsx'
import { type Column, DataTable, Written } from '../../components/data-table.tsx'
import { Filters } from '../../components/filters.tsx'
import { WorkspaceLink } from '../../components/links.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Empty, Page } from '../../components/page.tsx'
import { optionalText, useList } from '../../components/record-list.tsx'
import { Status, Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useCommand, useRead } from '../../session/calls.ts'
import { useSession } from '../../session/session.tsx'

export const workspacesSearch = z.object({ namePrefix: optionalText, deleted: optionalText, after: optionalText })

const pageSize = 20

/** All workspaces. */
export function WorkspacesPage() {
  const { navigation, workspaces, fields } = useText()
  const { mayChange } = useSession()
  const { search, change } = useList()
  const [isCreating, setCreating] = useState(false)
  const { namePrefix, after } = search
  const result = useRead('workspaces.list', {
    limit: pageSize,
    deleted: search.deleted === 'yes',
    ...(typeof namePrefix === 'string' && { namePrefix }),
    ...(typeof after === 'string' && { after }),
  })
  return (
    <Page
      title={navigation.workspaces}
      about={workspaces.about}
      actions={mayChange && <Button onClick={() => setCreating(true)}>{workspaces.create}</Button>}
    >
      <Filters
        key={JSON.stringify(search)}
        values={search as Record<string, string | undefined>}
        onChange={values => change({ ...values, after: undefined })}
        fields={[
          { name: 'namePrefix', label: workspaces.namePrefix },
          { name: 'deleted', label: workspaces.deletedToo, options: [['yes', workspaces.yes]] },
        ]}
      />
      <Loaded result={result}>
        {({ workspaces: found, next }) => (
          <>
            <DataTable
              label={navigation.workspaces}
              rows={found}
              rowKey={({ workspaceId }) => workspaceId}
              columns={
                [
                  { label: fields.name, cell: ({ name }) => <Written>{name}</Written> },
                  { label: fields.id, cell: ({ workspaceId }) => <WorkspaceLink workspaceId={workspaceId} /> },
                  { label: fields.status, cell: row => <LedgerStatus workspace={row} /> },
                  { label: navigation.wallets, cell: ({ wallets }) => wallets, isNumeric: true },
                  { label: navigation.transfers, cell: ({ transfers }) => transfers, isNumeric: true },
                  { label: fields.created, cell: ({ createdAt }) => <Time at={createdAt} /> },
                ] satisfies Column<WorkspaceRecord>[]
              }
              empty={<Empty>{workspaces.empty}</Empty>}
            />
            <CursorPager next={next} />
          </>
        )}
      </Loaded>
      {isCreating && <CreateForm onClose={() => setCreating(false)} />}
    </Page>
  )
}

/** Whether a workspace accepts transfers. */
export function LedgerStatus({ workspace }: { workspace: Pick<WorkspaceRecord, 'ledger' | 'isModified'> }) {
  const { keys } = useText()
  return workspace.isModified ? <Tag tone="bad">{keys.modified}</Tag> : <Status of={workspace.ledger} />
}

function CreateForm({ onClose }: { onClose: () => void }) {
  const { workspaces, fields } = useText()
  const run = useCommand()
  const navigate = useNavigate()
  const [name, setName] = useState('')

  async function create(): Promise<void> {
    const { workspaceId } = await run('workspaces.create', { name })
    await navigate({ to: '/workspaces/$workspaceId', params: { workspaceId }, search: { workspace: workspaceId } })
  }

  return (
    <ActionForm title={workspaces.create} about={workspaces.createAbout} onSubmit={create} onClose={onClose}>
      <TextInput
        label={fields.name}
        required
        maxLength={256}
        value={name}
        onChange={event => setName(event.currentTarget.value)}
        data-autofocus
      />
    </ActionForm>
  )
}
