import { Select } from '@mantine/core'
import { useDebouncedValue } from '@mantine/hooks'
import { useNavigate, useSearch } from '@tanstack/react-router'
import { type ReactNode, useState } from 'react'
import { useText } from '../preferences/preferences.tsx'
import { useRead } from '../session/calls.ts'
import { shortId } from './id.tsx'
import { Empty, Page } from './page.tsx'

/** The workspace of the page: it is part of the address, and stays when the operator moves to another page. */
export function useWorkspaceId(): string | undefined {
  return useSearch({ strict: false }).workspace
}

type InWorkspaceProps = {
  /** The page of one record: its workspace is chosen with it, and asked for only if the address has none. */
  isHidden?: boolean
  title?: string
  children: (workspaceId: string) => ReactNode
}

/** Shows a page of one workspace once it is chosen. */
export function InWorkspace({ isHidden = false, title = '', children }: InWorkspaceProps) {
  const workspaceId = useWorkspaceId()
  const { workspaces } = useText()
  if (workspaceId && isHidden) return children(workspaceId)
  if (workspaceId)
    return (
      <>
        <WorkspacePicker workspaceId={workspaceId} />
        {children(workspaceId)}
      </>
    )
  const choose = (
    <>
      <WorkspacePicker />
      <Empty>{workspaces.chooseFirst}</Empty>
    </>
  )
  return isHidden ? <Page title={title}>{choose}</Page> : choose
}

const debounceMs = 200

/** Chooses a workspace by the beginning of its name, or by its ID. */
function WorkspacePicker({ workspaceId }: { workspaceId?: string }) {
  const { workspaces } = useText()
  const navigate = useNavigate()
  const [entered, setEntered] = useState('')
  const [namePrefix] = useDebouncedValue(entered.trim(), debounceMs)
  const chosen = useRead('workspaces.get', { workspaceId: workspaceId ?? '' }, { enabled: workspaceId !== undefined })
  const isId = namePrefix.startsWith('wsp_')
  const isName = namePrefix !== '' && !isId && namePrefix !== labelOf(chosen.data)
  const found = useRead('workspaces.list', isName ? { namePrefix } : {})
  const listed = (found.data?.workspaces ?? []).filter(each => each.workspaceId !== workspaceId)
  const options = [
    ...(workspaceId ? [{ value: workspaceId, label: labelOf(chosen.data) ?? workspaceId }] : []),
    ...listed.map(each => ({ value: each.workspaceId, label: labelOf(each)! })),
    ...(isId && namePrefix !== workspaceId ? [{ value: namePrefix, label: namePrefix }] : []),
  ]
  return (
    <Select
      label={workspaces.workspace}
      placeholder={workspaces.choose}
      searchable
      className="id-input"
      nothingFoundMessage={workspaces.noneFound}
      value={workspaceId ?? null}
      onChange={chosenId => void navigate({ to: '.', search: { workspace: chosenId ?? undefined } as never })}
      onSearchChange={setEntered}
      // The service has searched already.
      filter={({ options: all }) => all}
      data={options.filter(({ value }, at) => options.findIndex(each => each.value === value) === at)}
    />
  )
}

function labelOf(workspace: { name: string; workspaceId: string } | undefined): string | undefined {
  return workspace && `${workspace.name} – ${shortId(workspace.workspaceId)}`
}
