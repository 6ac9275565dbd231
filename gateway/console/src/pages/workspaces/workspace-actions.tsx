import { Button, Checkbox } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { ActionForm, type Reason } from '../../components/action-form.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useCommand } from '../../session/calls.ts'

type WorkspaceProps = { workspaceId: string }

/** Deletes a workspace: its keys stop working, and its history stays. */
export function DeleteWorkspaceButton({ workspaceId }: WorkspaceProps) {
  const { workspaces } = useText()
  const run = useCommand()
  const navigate = useNavigate()
  const [isOpen, setOpen] = useState(false)
  const [force, setForce] = useState(false)

  async function remove(reason: Reason): Promise<void> {
    await run('workspaces.delete', { workspaceId, force, ...reason })
    await navigate({ to: '/workspaces', search: { workspace: undefined } })
  }

  return (
    <>
      <Button variant="default" onClick={() => setOpen(true)}>
        {workspaces.delete}
      </Button>
      {isOpen && (
        <ActionForm
          title={workspaces.delete}
          about={workspaces.deleteAbout}
          isDangerous
          onSubmit={remove}
          onClose={() => setOpen(false)}
        >
          <Checkbox
            label={workspaces.deleteMoney}
            checked={force}
            onChange={event => setForce(event.currentTarget.checked)}
          />
        </ActionForm>
      )}
    </>
  )
}
