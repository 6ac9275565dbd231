import { Button, Text } from '@mantine/core'
import { checkpointLines } from '@workspace-wallet/core-client/checkpoint'
import { useState } from 'react'
import { ledgerCalls } from '../../api/ledger-calls.ts'
import { FailureAlert } from '../../components/failure.tsx'
import { Section } from '../../components/page.tsx'
import { save } from '../../components/save.ts'
import { useText } from '../../preferences/preferences.tsx'
import { useSession } from '../../session/session.tsx'

/** Takes a checkpoint and hands it to the operator as a file. */
export function CheckpointSection({ workspaceId }: { workspaceId: string | undefined }) {
  const { ledger } = useText()
  const { client } = useSession()
  const [isRunning, setRunning] = useState(false)
  const [taken, setTaken] = useState<string | null>(null)
  const [error, setError] = useState<unknown>(null)

  async function take(): Promise<void> {
    if (isRunning) return
    setRunning(true)
    setTaken(null)
    setError(null)
    try {
      const name = `${workspaceId ?? 'all'}-${new Date().toISOString().replace(/[:.]/g, '-')}.checkpoint`
      const lines: string[] = []
      for await (const { line } of checkpointLines(ledgerCalls(client), { workspaceId })) lines.push(line)
      save(new Blob(lines, { type: 'application/jsonl' }), name)
      setTaken(name)
    } catch (failure) {
      setError(failure)
    } finally {
      setRunning(false)
    }
  }

  return (
    <Section
      title={ledger.checkpoints}
      actions={
        <Button variant="default" loading={isRunning} onClick={() => void take()}>
          {ledger.takeCheckpoint}
        </Button>
      }
    >
      <Text size="sm" c="dimmed">
        {ledger.checkpointsAbout}
      </Text>
      {taken && (
        <Text size="sm" role="status">
          {ledger.checkpointTaken(taken)}
        </Text>
      )}
      {error !== null && <FailureAlert error={error} />}
    </Section>
  )
}
