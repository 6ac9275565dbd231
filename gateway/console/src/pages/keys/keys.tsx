import { Button } from '@mantine/core'
import { useState } from 'react'
import { z } from 'zod'
import { Page } from '../../components/page.tsx'
import { optionalText } from '../../components/record-list.tsx'
import { InWorkspace, useWorkspaceId } from '../../components/workspace-picker.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useSession } from '../../session/session.tsx'
import { IssueKeyForm } from './issue-key.tsx'
import { KeysTable } from './keys-table.tsx'

export const keysSearch = z.object({ after: optionalText })

/** The API keys of a workspace. */
export function KeysPage() {
  const { navigation, keys } = useText()
  const { mayChange } = useSession()
  const chosen = useWorkspaceId()
  const [isIssuing, setIssuing] = useState(false)
  const issue = chosen && mayChange && <Button onClick={() => setIssuing(true)}>{keys.issue}</Button>
  return (
    <Page title={navigation.keys} about={keys.about} actions={issue}>
      <InWorkspace>{workspaceId => <KeysTable workspaceId={workspaceId} />}</InWorkspace>
      {isIssuing && chosen && <IssueKeyForm workspaceId={chosen} onClose={() => setIssuing(false)} />}
    </Page>
  )
}
