import { Button, Group } from '@mantine/core'
import type { SpendingLimit } from '@workspace-wallet/contract'
import { useState } from 'react'
import { useText } from '../preferences/preferences.tsx'
import { useCommand, useRead } from '../session/calls.ts'
import { useSession } from '../session/session.tsx'
import { ActionForm, type Reason } from './action-form.tsx'
import { Amount, widestFraction } from './amount.tsx'
import { AmountInput } from './amount-input.tsx'
import { CurrencySelect } from './currency-select.tsx'
import { SectionPager } from './cursor-pager.tsx'
import { type Column, DataTable } from './data-table.tsx'
import { KeyLink, WalletLink } from './links.tsx'
import { Loaded } from './loaded.tsx'
import { Empty, Section } from './page.tsx'
import { Tag } from './status.tsx'
import { Time } from './time.tsx'

type Subject = { walletId: string } | { apiKey: string }
type LimitsProps = {
  workspaceId: string
  /** Whose limits; without it, all of the workspace. */
  subject?: Subject
  /** The only currency that the subject can spend. */
  currency?: string
}

const subjectOf = ({ apiKey, walletId }: SpendingLimit): Subject =>
  apiKey === null ? { walletId: walletId! } : { apiKey }

const pageSize = 50

/** What a key or a wallet may spend, and what it has spent today. */
export function LimitsSection({ workspaceId, subject, currency }: LimitsProps) {
  const { limits, fields, keys } = useText()
  const { mayChange } = useSession()
  const [after, setAfter] = useState<string | null>(null)
  const result = useRead('limits.list', {
    workspaceId,
    limit: pageSize,
    ...(subject && { subject }),
    ...(after !== null && { after }),
  })
  const [edited, setEdited] = useState<Edited | null>(null)
  const [cleared, setCleared] = useState<SpendingLimit | null>(null)

  const columnsOf = (rows: readonly SpendingLimit[]): Column<SpendingLimit>[] => {
    const fraction = widestFraction(rows.map(row => row.currency))
    const amount = (value: SpendingLimit['perDay'], row: SpendingLimit) =>
      value === null ? limits.unlimited : <Amount value={value} currency={row.currency} fraction={fraction} />
    const who: Column<SpendingLimit> = {
      label: limits.of,
      cell: ({ apiKey, walletId }) =>
        apiKey === null ? (
          <WalletLink workspaceId={workspaceId} walletId={walletId!} />
        ) : (
          <KeyLink workspaceId={workspaceId} apiKey={apiKey} />
        ),
    }
    return [
      ...(subject ? [] : [who]),
      { label: fields.currency, cell: row => row.currency },
      { label: limits.perTransfer, cell: row => amount(row.perTransfer, row), isNumeric: true },
      { label: limits.perDay, cell: row => amount(row.perDay, row), isNumeric: true },
      {
        label: limits.spentToday,
        cell: row => <Amount value={row.spentToday} currency={row.currency} fraction={fraction} />,
        isNumeric: true,
      },
      { label: limits.resets, cell: ({ resetsAt }) => <Time at={resetsAt} /> },
      { label: fields.status, cell: ({ isModified }) => isModified && <Tag tone="bad">{keys.modified}</Tag> },
      ...(mayChange
        ? [
            {
              label: fields.actions,
              cell: (row: SpendingLimit) => (
                <Group gap="xs">
                  <Button
                    size="compact-sm"
                    variant="default"
                    onClick={() => setEdited({ subject: subjectOf(row), currency: row.currency, limit: row })}
                  >
                    {limits.change}
                  </Button>
                  <Button size="compact-sm" variant="default" onClick={() => setCleared(row)}>
                    {limits.clear}
                  </Button>
                </Group>
              ),
            },
          ]
        : []),
    ]
  }

  return (
    <Section
      title={limits.title}
      actions={
        subject &&
        mayChange && (
          <Button variant="default" onClick={() => setEdited({ subject, currency })}>
            {limits.set}
          </Button>
        )
      }
    >
      <Loaded result={result}>
        {({ limits: rows, next }) => (
          <>
            <DataTable
              label={limits.title}
              rows={rows}
              columns={columnsOf(rows)}
              rowKey={row => `${JSON.stringify(subjectOf(row))} ${row.currency}`}
              empty={<Empty>{limits.empty}</Empty>}
            />
            <SectionPager after={after} next={next} onChange={setAfter} />
          </>
        )}
      </Loaded>
      {edited && <SetLimitForm workspaceId={workspaceId} {...edited} onClose={() => setEdited(null)} />}
      {cleared && <ClearLimitForm workspaceId={workspaceId} limit={cleared} onClose={() => setCleared(null)} />}
    </Section>
  )
}

type Edited = { subject: Subject; currency?: string | undefined; limit?: SpendingLimit }

function SetLimitForm({ workspaceId, subject, currency: only, limit, onClose }: Edited & FormProps) {
  const { limits } = useText()
  const run = useCommand()
  const [currency, setCurrency] = useState(only ?? '')
  const [perTransfer, setPerTransfer] = useState(limit?.perTransfer ?? '')
  const [perDay, setPerDay] = useState(limit?.perDay ?? '')
  const set = (reason: Reason) =>
    run('limits.set', {
      workspaceId,
      subject,
      currency,
      ...(perTransfer !== '' && { perTransfer }),
      ...(perDay !== '' && { perDay }),
      ...reason,
    })
  return (
    <ActionForm title={limits.set} about={limits.setAbout} isDangerous onSubmit={set} onClose={onClose}>
      {only === undefined && <CurrencySelect value={currency} onChange={setCurrency} />}
      <AmountInput
        label={limits.perTransfer}
        currency={currency}
        value={perTransfer}
        onChange={setPerTransfer}
        isRequired={perDay === ''}
      />
      <AmountInput
        label={limits.perDay}
        currency={currency}
        value={perDay}
        onChange={setPerDay}
        isRequired={perTransfer === ''}
      />
    </ActionForm>
  )
}

type FormProps = { workspaceId: string; onClose: () => void }

function ClearLimitForm({ workspaceId, limit, onClose }: FormProps & { limit: SpendingLimit }) {
  const { limits } = useText()
  const run = useCommand()
  const { currency } = limit
  return (
    <ActionForm
      title={limits.clear}
      about={limits.clearAbout(currency)}
      isDangerous
      onSubmit={reason => run('limits.clear', { workspaceId, subject: subjectOf(limit), currency, ...reason })}
      onClose={onClose}
    />
  )
}
