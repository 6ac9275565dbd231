import { Alert, Button, Text } from '@mantine/core'
import { type VerifyProgress, verifyLedger } from '@workspace-wallet/core-client/ledger'
import { useState } from 'react'
import { ledgerCalls } from '../../api/ledger-calls.ts'
import { FailureAlert } from '../../components/failure.tsx'
import { Section } from '../../components/page.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useSession } from '../../session/session.tsx'

/** Whether the chain of the wallet is intact: verifies its workspace, and shows what concerns the wallet. */
export function IntegritySection({ workspaceId, walletId }: { workspaceId: string; walletId: string }) {
  const { wallets, ledger } = useText()
  const { client } = useSession()
  const [findings, setFindings] = useState<{ own: string[]; others: number } | null>(null)
  const [progress, setProgress] = useState<string | null>(null)
  const [error, setError] = useState<unknown>(null)

  async function run(): Promise<void> {
    if (progress !== null) return
    setFindings(null)
    setError(null)
    setProgress(ledger.progress(0, 0))
    const onProgress = (now: VerifyProgress) => {
      if (now.kind === 'flows') setProgress(ledger.progress(now.flows, now.totalFlows))
    }
    try {
      const { violations } = await verifyLedger(ledgerCalls(client), { workspaceId, onProgress })
      const own = violations.filter(({ ids }) => Object.values(ids).includes(walletId)).map(({ message }) => message)
      setFindings({ own, others: violations.length - own.length })
    } catch (failure) {
      setError(failure)
    } finally {
      setProgress(null)
    }
  }

  return (
    <Section
      title={wallets.integrity}
      actions={
        <Button variant="default" loading={progress !== null} onClick={() => void run()}>
          {wallets.verifyChain}
        </Button>
      }
    >
      <Text size="sm" c="dimmed" role="status">
        {progress ?? wallets.integrityAbout}
      </Text>
      {error !== null && <FailureAlert error={error} />}
      {findings && (
        <Alert
          variant="outline"
          color={findings.own.length === 0 ? 'brand' : 'red'}
          role={findings.own.length === 0 ? 'status' : 'alert'}
          title={findings.own.length === 0 ? wallets.intact : wallets.damaged(findings.own.length)}
        >
          {findings.own.map(message => (
            <Text key={message} size="sm">
              {message}
            </Text>
          ))}
          {findings.others > 0 && <Text size="sm">{wallets.othersDamaged(findings.others)}</Text>}
        </Alert>
      )}
    </Section>
  )
}
