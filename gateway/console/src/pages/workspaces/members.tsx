import { Button, TextInput } from '@mantine/core'
import type { MemberRecord } from '@workspace-wallet/contract'
import { useState } from 'react'
import { ActionForm } from '../../components/action-form.tsx'
import { SectionPager } from '../../components/cursor-pager.tsx'
import { type Column, DataTable, Written } from '../../components/data-table.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Empty, Section } from '../../components/page.tsx'
import { Tag } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useCommand, useRead } from '../../session/calls.ts'
import { useSession } from '../../session/session.tsx'

const pageSize = 20

/** Who may own keys of the workspace. */
export function MembersSection({ workspaceId }: { workspaceId: string }) {
  const { workspaces } = useText()
  const { mayChange } = useSession()
  const [after, setAfter] = useState<string | null>(null)
  const [action, setAction] = useState<MemberAction | null>(null)
  const result = useRead('members.list', { workspaceId, limit: pageSize, ...(after !== null && { after }) })
  const columns = useColumns(setAction)
  return (
    <Section
      title={workspaces.members}
      actions={
        mayChange && (
          <Button variant="default" onClick={() => setAction({ name: 'add' })}>
            {workspaces.addMember}
          </Button>
        )
      }
    >
      <Loaded result={result}>
        {({ members, next }) => (
          <>
            <DataTable
              label={workspaces.members}
              rows={members}
              columns={columns}
              rowKey={({ userId }) => userId}
              empty={<Empty>{workspaces.noMembers}</Empty>}
            />
            <SectionPager after={after} next={next} onChange={setAfter} />
          </>
        )}
      </Loaded>
      {action && <MemberForm workspaceId={workspaceId} action={action} onClose={() => setAction(null)} />}
    </Section>
  )
}

type MemberAction = { name: 'add' } | { name: 'remove'; userId: string }

function useColumns(choose: (action: MemberAction) => void): Column<MemberRecord>[] {
  const { workspaces, fields, keys } = useText()
  const { mayChange } = useSession()
  return [
    { label: workspaces.userId, cell: ({ userId }) => <Written>{userId}</Written> },
    { label: workspaces.since, cell: ({ createdAt }) => <Time at={createdAt} /> },
    { label: fields.status, cell: ({ isModified }) => isModified && <Tag tone="bad">{keys.modified}</Tag> },
    {
      label: fields.actions,
      cell: ({ userId }) =>
        mayChange && (
          <Button size="compact-sm" variant="default" onClick={() => choose({ name: 'remove', userId })}>
            {workspaces.removeMember}
          </Button>
        ),
    },
  ]
}

type MemberFormProps = { workspaceId: string; action: MemberAction; onClose: () => void }

function MemberForm({ workspaceId, action, onClose }: MemberFormProps) {
  const { workspaces } = useText()
  const run = useCommand()
  const [entered, setEntered] = useState('')
  if (action.name === 'remove')
    return (
      <ActionForm
        title={workspaces.removeMember}
        about={workspaces.removeMemberAbout(action.userId)}
        isDangerous
        onSubmit={reason => run('members.remove', { workspaceId, userId: action.userId, ...reason })}
        onClose={onClose}
      />
    )
  return (
    <ActionForm
      title={workspaces.addMember}
      about={workspaces.addMemberAbout}
      onSubmit={() => run('members.add', { workspaceId, userId: entered })}
      onClose={onClose}
    >
      <TextInput
        label={workspaces.userId}
        description={workspaces.userIdAbout}
        required
        pattern="[A-Za-z0-9_.@:+\-]{1,128}"
        value={entered}
        onChange={event => setEntered(event.currentTarget.value)}
        data-autofocus
      />
    </ActionForm>
  )
}
