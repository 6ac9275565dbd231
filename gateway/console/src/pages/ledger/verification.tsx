import { Button, Group, Progress, Text } from '@mantine/core'
import type { VerifyReport } from '@workspace-wallet/contract'
import { useRef, useState } from 'react'
import { verify } from '../../api/streams.ts'
import { FailureAlert } from '../../components/failure.tsx'
import { Section } from '../../components/page.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useSession } from '../../session/session.tsx'
import { Report } from './report.tsx'

/** Verifies all workspaces, or the chosen one. */
export function VerificationSection({ workspaceId }: { workspaceId: string | undefined }) {
  const { ledger, actions } = useText()
  const { client } = useSession()
  const [progress, setProgress] = useState<Flows | null>(null)
  const [report, setReport] = useState<VerifyReport | null>(null)
  const [error, setError] = useState<unknown>(null)
  const running = useRef<AbortController>(null)

  async function run(scope: string | undefined): Promise<void> {
    if (running.current) return
    const controller = new AbortController()
    running.current = controller
    setProgress({ flows: 0, totalFlows: 0 })
    setReport(null)
    setError(null)
    try {
      setReport(
        await verify(client, scope, (flows, totalFlows) => setProgress({ flows, totalFlows }), controller.signal),
      )
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
      {progress && <FlowProgress {...progress} />}
      {error !== null && <FailureAlert error={error} />}
      {report && <Report report={report} />}
    </Section>
  )
}

type Flows = { flows: number; totalFlows: number }

/** How many flows are verified. */
export function FlowProgress({ flows, totalFlows }: Flows) {
  const { ledger } = useText()
  return (
    <Group gap="sm" role="status">
      <Progress
        value={totalFlows === 0 ? 0 : (100 * flows) / totalFlows}
        flex={1}
        animated
        aria-label={ledger.verification}
      />
      <Text size="sm">{ledger.progress(flows, totalFlows)}</Text>
    </Group>
  )
}
