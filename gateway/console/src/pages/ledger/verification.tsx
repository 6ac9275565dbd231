import { Button, FileInput, Group, Progress, Text } from '@mantine/core'
import type { VerifyReport } from '@workspace-wallet/contract'
import { type VerifyProgress, verifyLedger } from '@workspace-wallet/core-client/ledger'
import { useRef, useState } from 'react'
import { ledgerCalls, textOf } from '../../api/ledger-calls.ts'
import { FailureAlert } from '../../components/failure.tsx'
import { Section } from '../../components/page.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useSession } from '../../session/session.tsx'
import { Report } from './report.tsx'

/** Verifies all workspaces, or the chosen one. An admin can compare them with a checkpoint, whose file core gets first. */
export function VerificationSection({ workspaceId }: { workspaceId: string | undefined }) {
  const { ledger, actions } = useText()
  const { client, mayChange } = useSession()
  const [file, setFile] = useState<File | null>(null)
  const [progress, setProgress] = useState<VerifyProgress | null>(null)
  const [report, setReport] = useState<VerifyReport | null>(null)
  const [error, setError] = useState<unknown>(null)
  const running = useRef<AbortController>(null)

  async function run(scope: string | undefined): Promise<void> {
    if (running.current) return
    const controller = new AbortController()
    running.current = controller
    setProgress({ kind: 'flows', flows: 0, totalFlows: 0 })
    setReport(null)
    setError(null)
    try {
      const checkpoint = file ? textOf(file) : undefined
      const options = { workspaceId: scope, checkpoint, onProgress: setProgress, signal: controller.signal }
      setReport(await verifyLedger(ledgerCalls(client), options))
    } catch (failure) {
      if (!controller.signal.aborted) setError(failure)
    } finally {
      running.current = null
      setProgress(null)
    }
  }

  return (
    <Section
      title={ledger.verification}
      actions={
        progress ? (
          <Button variant="default" onClick={() => running.current?.abort()}>
            {actions.stop}
          </Button>
        ) : (
          <>
            {workspaceId && (
              <Button variant="default" onClick={() => void run(workspaceId)}>
                {ledger.verifyWorkspace}
              </Button>
            )}
            <Button onClick={() => void run(undefined)}>{ledger.verifyAll}</Button>
          </>
        )
      }
    >
      <Text size="sm" c="dimmed">
        {ledger.verificationAbout}
      </Text>
      {mayChange && (
        <FileInput
          label={ledger.against}
          description={ledger.againstAbout}
          placeholder={ledger.chooseFile}
          className="file-input"
          clearable
          clearButtonProps={{ 'aria-label': ledger.clearFile }}
          value={file}
          onChange={setFile}
        />
      )}
      {progress && <VerificationProgress progress={progress} />}
      {error !== null && <FailureAlert error={error} />}
      {report && <Report report={report} />}
    </Section>
  )
}

/** How many flows are verified, or how much of the checkpoint was uploaded before. */
export function VerificationProgress({ progress }: { progress: VerifyProgress }) {
  const { ledger } = useText()
  const isUpload = progress.kind === 'checkpoint'
  const isUnknown = isUpload || progress.totalFlows === 0
  return (
    <Group gap="sm" role="status">
      <Progress
        value={isUnknown ? 0 : (100 * progress.flows) / progress.totalFlows}
        flex={1}
        animated
        aria-label={ledger.verification}
      />
      <Text size="sm">
        {isUpload ? ledger.uploaded(progress.wallets) : ledger.progress(progress.flows, progress.totalFlows)}
      </Text>
    </Group>
  )
}
