import { Page } from '../../components/page.tsx'
import { useWorkspaceId } from '../../components/workspace-picker.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { CheckpointSection } from './checkpoint.tsx'
import { HaltedSection } from './halted.tsx'
import { VerificationSection } from './verification.tsx'

/** Whether the ledger is sound, and what to do if it is not. */
export function LedgerPage() {
  const { navigation, ledger } = useText()
  const workspaceId = useWorkspaceId()
  return (
    <Page title={navigation.ledger} about={ledger.about}>
      <HaltedSection />
      <VerificationSection workspaceId={workspaceId} />
      <CheckpointSection workspaceId={workspaceId} />
    </Page>
  )
}
