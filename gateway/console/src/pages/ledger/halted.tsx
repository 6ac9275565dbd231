import { Button, Checkbox, Group, Stack, Text } from '@mantine/core'
import { useQueryClient } from '@tanstack/react-query'
import { countViolations, type HaltedLedger, type RepairResult, type VerifyReport } from '@workspace-wallet/contract'
import { reopenLedger, repairLedger, type VerifyProgress } from '@workspace-wallet/core-client/ledger'
import { useState } from 'react'
import { ledgerCalls } from '../../api/ledger-calls.ts'
import { ActionForm, type Reason } from '../../components/action-form.tsx'
import { DataTable, Written } from '../../components/data-table.tsx'
import { FailureAlert } from '../../components/failure.tsx'
import { Id } from '../../components/id.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Empty, Section } from '../../components/page.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'
import { useSession } from '../../session/session.tsx'
import { Report } from './report.tsx'
import { VerificationProgress } from './verification.tsx'

/** The workspaces that reject postings, and their way back. */
export function HaltedSection() {
  const { ledger, workspaces } = useText()
  const { mayChange } = useSession()
  const result = useRead('ledger.halted', {}, { refreshMs: 10_000 })
  const [action, setAction] = useState<{ name: 'repair' | 'reopen'; workspaceId: string } | null>(null)
  const buttonsOf = ({ workspaceId }: HaltedLedger) => (
    <Group gap="xs">
      {mayChange && (
        <Button size="compact-sm" variant="default" onClick={() => setAction({ name: 'repair', workspaceId })}>
          {ledger.repair}
        </Button>
      )}
      {mayChange && (
        <Button size="compact-sm" variant="default" onClick={() => setAction({ name: 'reopen', workspaceId })}>
          {ledger.reopen}
        </Button>
      )}
    </Group>
  )
  return (
    <Section title={ledger.halted}>
      <Loaded result={result}>
        {({ ledgers, total }) => (
          <>
            <DataTable
              label={ledger.halted}
              rows={ledgers}
              rowKey={({ workspaceId }) => workspaceId}
              empty={<Empty>{ledger.noneHalted}</Empty>}
              columns={[
                { label: workspaces.workspace, cell: ({ workspaceId }) => <Id value={workspaceId} isFull /> },
                { label: ledger.reason, cell: ({ reason }) => <Written>{reason}</Written> },
                { label: ledger.wayBack, cell: buttonsOf },
              ]}
            />
            {total > ledgers.length && <Text>{ledger.moreHalted(total - ledgers.length)}</Text>}
          </>
        )}
      </Loaded>
      {action?.name === 'repair' && <RepairForm workspaceId={action.workspaceId} onClose={() => setAction(null)} />}
      {action?.name === 'reopen' && <ReopenForm workspaceId={action.workspaceId} onClose={() => setAction(null)} />}
    </Section>
  )
}

type FormProps = { workspaceId: string; onClose: () => void }

/** Shows what a repair would change, and then makes the changes. */
function RepairForm({ workspaceId, onClose }: FormProps) {
  const { ledger } = useText()
  const { client } = useSession()
  const queries = useQueryClient()
  const [progress, setProgress] = useState<VerifyProgress | null>(null)
  const [planned, setPlanned] = useState<RepairResult | null>(null)
  const [error, setError] = useState<unknown>(null)

  async function run(dryRun: boolean, reason: Reason = {}): Promise<void> {
    try {
      setPlanned(await repairLedger(ledgerCalls(client), { workspaceId, dryRun, ...reason }, setProgress))
    } finally {
      setProgress(null)
    }
    if (!dryRun) await queries.invalidateQueries()
  }

  return (
    <ActionForm
      title={ledger.repairTitle}
      about={ledger.repairAbout}
      submit={ledger.repair}
      isDangerous
      onSubmit={reason => run(false, reason)}
      staysOpen
      onClose={onClose}
    >
      <Id value={workspaceId} isFull />
      <Group>
        <Button
          variant="default"
          onClick={() => {
            setError(null)
            run(true).catch(setError)
          }}
        >
          {ledger.dryRun}
        </Button>
      </Group>
      {progress && <VerificationProgress progress={progress} />}
      {error !== null && <FailureAlert error={error} />}
      {planned && <RepairOutcome result={planned} />}
    </ActionForm>
  )
}

function RepairOutcome({ result }: { result: RepairResult }) {
  const { ledger, audit } = useText()
  const { repaired, reopened, changes, moreChanges, report } = result
  const count = changes.length + moreChanges
  return (
    <Stack gap="sm">
      <Text role="status">{repaired ? ledger.repaired(count, reopened) : ledger.wouldRepair(count)}</Text>
      <DataTable
        label={audit.changes}
        rows={changes}
        rowKey={({ target }) => target}
        empty={null}
        columns={[
          { label: audit.target, cell: ({ target }) => <Id value={target} /> },
          { label: audit.before, cell: ({ before }) => <Written>{JSON.stringify(before)}</Written> },
          { label: audit.after, cell: ({ after }) => <Written>{JSON.stringify(after)}</Written> },
        ]}
      />
      {!report.ok && <Report report={report} />}
    </Stack>
  )
}

/** Verifies a halted workspace, and reopens it if it is sound, or if the operator insists. */
function ReopenForm({ workspaceId, onClose }: FormProps) {
  const { ledger } = useText()
  const { client } = useSession()
  const queries = useQueryClient()
  const [isForced, setForced] = useState(false)
  const [progress, setProgress] = useState<VerifyProgress | null>(null)
  const [outcome, setOutcome] = useState<{ reopened: boolean; report: VerifyReport } | null>(null)

  async function run(reason: Reason): Promise<void> {
    try {
      setOutcome(await reopenLedger(ledgerCalls(client), { workspaceId, force: isForced, ...reason }, setProgress))
    } finally {
      setProgress(null)
    }
    await queries.invalidateQueries()
  }

  return (
    <ActionForm
      title={ledger.reopenTitle}
      about={ledger.reopenAbout}
      submit={ledger.reopen}
      isDangerous
      onSubmit={run}
      staysOpen
      onClose={onClose}
    >
      <Id value={workspaceId} isFull />
      <Checkbox label={ledger.force} checked={isForced} onChange={event => setForced(event.currentTarget.checked)} />
      {progress && <VerificationProgress progress={progress} />}
      {outcome && (
        <Stack gap="sm">
          <Text role="status">
            {outcome.reopened ? ledger.reopened : ledger.notReopened(countViolations(outcome.report.brokenRules))}
          </Text>
          <Report report={outcome.report} />
        </Stack>
      )}
    </ActionForm>
  )
}
