import { Alert, Stack, Text } from '@mantine/core'
import { type CheckpointFindings, ledgerRules, type VerifyReport } from '@workspace-wallet/contract'
import { DataTable, Written } from '../../components/data-table.tsx'
import { useTimeText } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'

/** What a verification has found. */
export function Report({ report }: { report: VerifyReport }) {
  const { ledger } = useText()
  const { ok, brokenRules, violations, notes, checkpoint } = report
  const isSound = brokenRules.length === 0
  const write = useTimeText()
  const comparison = ({ fault, takenAt, wallets }: CheckpointFindings) => {
    if (fault !== null || takenAt === null) return ledger.notCompared(fault ?? '')
    const taken = write(new Date(takenAt))
    return isSound ? ledger.continued(taken, wallets) : ledger.compared(taken, wallets)
  }
  return (
    <Stack gap="md">
      <Alert
        color={ok ? 'brand' : 'red'}
        variant="outline"
        role={ok ? 'status' : 'alert'}
        title={isSound ? ledger.sound : ledger.broken(brokenRules.length)}
      >
        <Text size="sm">{ledger.counts(report)}</Text>
        {checkpoint && <Text size="sm">{comparison(checkpoint)}</Text>}
      </Alert>
      {brokenRules.length > 0 && (
        <DataTable
          label={ledger.brokenRules}
          rows={brokenRules}
          rowKey={({ rule }) => rule}
          empty={null}
          columns={[
            { label: ledger.rule, cell: ({ rule }) => rule },
            { label: ledger.violations, cell: ({ violations: count }) => count, isNumeric: true },
            { label: ledger.meaning, cell: ({ rule }) => ledgerRules[rule] },
          ]}
        />
      )}
      {violations.length > 0 && (
        <DataTable
          label={ledger.violations}
          rows={violations.map((violation, at) => ({ ...violation, at }))}
          rowKey={({ at }) => String(at)}
          empty={null}
          columns={[
            { label: ledger.rule, cell: ({ rule }) => rule },
            {
              label: ledger.where,
              cell: ({ ids }) => (
                <Written>
                  {Object.entries(ids)
                    .map(([name, id]) => `${name} ${id}`)
                    .join(', ')}
                </Written>
              ),
            },
            { label: ledger.finding, cell: ({ message }) => <Written>{message}</Written> },
          ]}
        />
      )}
      {notes.length > 0 && (
        <details>
          <summary>{ledger.notes(notes.length)}</summary>
          <DataTable
            label={ledger.notes(notes.length)}
            rows={notes}
            rowKey={({ object, definition }) => `${object} ${definition}`}
            empty={null}
            columns={[
              { label: ledger.object, cell: ({ object }) => <Written>{object}</Written> },
              { label: ledger.what, cell: ({ definition }) => <Written>{definition}</Written> },
            ]}
          />
        </details>
      )}
    </Stack>
  )
}
