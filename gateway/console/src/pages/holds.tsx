import { Button } from '@mantine/core'
import { currencyDecimals, type Hold, holdStatuses } from '@workspace-wallet/contract'
import { useState } from 'react'
import { ActionForm } from '../components/action-form.tsx'
import { Amount, amountText, widestFraction } from '../components/amount.tsx'
import { type Column, DataTable, Written } from '../components/data-table.tsx'
import { Id } from '../components/id.tsx'
import { PageLink, WalletLink } from '../components/links.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Empty, Page } from '../components/page.tsx'
import { filterOf, listSearch, optionalText, optionalTime, RecordList, useList } from '../components/record-list.tsx'
import { Status } from '../components/status.tsx'
import { Time } from '../components/time.tsx'
import { InWorkspace } from '../components/workspace-picker.tsx'
import { useText } from '../preferences/preferences.tsx'
import { useCommand, useRead } from '../session/calls.ts'
import { useSession } from '../session/session.tsx'

const filters = ['bizIdPrefix', 'reference', 'currency', 'status', 'createdFrom', 'createdTo'] as const

export const holdsSearch = listSearch.extend({
  /** One hold, shown above the list. */
  hold: optionalText,
  wallet: optionalText,
  bizIdPrefix: optionalText,
  reference: optionalText,
  currency: optionalText,
  status: optionalText,
  createdFrom: optionalTime,
  createdTo: optionalTime,
})

/** The holds of a workspace. */
export function HoldsPage() {
  const { navigation, holds } = useText()
  return (
    <Page title={navigation.holds} about={holds.about}>
      <InWorkspace>{workspaceId => <Holds workspaceId={workspaceId} />}</InWorkspace>
    </Page>
  )
}

function Holds({ workspaceId }: { workspaceId: string }) {
  const text = useText()
  const { holds, fields } = text
  const [released, setReleased] = useState<Hold | null>(null)
  const { search, request } = useList<'createdAt'>()
  const { hold, wallet } = search
  const result = useRead('holds.list', {
    workspaceId,
    ...(typeof wallet === 'string' && { walletId: wallet }),
    filter: filterOf(search, filters),
    ...request,
  })
  return (
    <>
      {typeof hold === 'string' && <OneHold workspaceId={workspaceId} holdId={hold} onRelease={setReleased} />}
      <RecordList
        label={text.navigation.holds}
        result={result}
        rowKey={({ holdId }) => holdId}
        columns={useColumns(workspaceId, setReleased)}
        empty={<Empty>{holds.empty}</Empty>}
        fields={[
          { name: 'wallet', label: fields.wallet, placeholder: 'wal_…' },
          { name: 'bizIdPrefix', label: holds.bizIdPrefix },
          { name: 'reference', label: fields.reference },
          { name: 'currency', label: fields.currency, options: [...currencyDecimals.keys()].map(code => [code, code]) },
          { name: 'status', label: fields.status, options: holdStatuses.map(each => [each, text.statuses[each]]) },
          { name: 'createdFrom', label: text.filters.from, type: 'time' },
          { name: 'createdTo', label: text.filters.to, type: 'time' },
        ]}
      />
      {released && <ReleaseForm workspaceId={workspaceId} hold={released} onClose={() => setReleased(null)} />}
    </>
  )
}

type OneHoldProps = { workspaceId: string; holdId: string; onRelease: (hold: Hold) => void }

function OneHold({ workspaceId, holdId, onRelease }: OneHoldProps) {
  const { holds } = useText()
  const result = useRead('holds.get', { workspaceId, bizId: holdId })
  const columnsOf = useColumns(workspaceId, onRelease)
  return (
    <Loaded result={result}>
      {hold => (
        <DataTable
          label={holds.hold}
          rows={[hold]}
          rowKey={() => hold.holdId}
          columns={columnsOf([hold]).map(({ sort: _, ...column }) => column)}
          empty={null}
        />
      )}
    </Loaded>
  )
}

function useColumns(workspaceId: string, release: (hold: Hold) => void): (rows: readonly Hold[]) => Column<Hold>[] {
  const { holds, fields } = useText()
  const { mayChange } = useSession()
  return rows => {
    const fraction = widestFraction(rows.map(({ currency }) => currency))
    const amount = (value: Hold['remainingAmount'] | string, currency: string) => (
      <Amount value={value} currency={currency} fraction={fraction} />
    )
    return [
      { label: fields.created, cell: ({ createdAt }) => <Time at={createdAt} />, sort: 'createdAt' },
      { label: fields.id, cell: ({ holdId }) => <Id value={holdId} /> },
      { label: fields.bizId, cell: ({ bizId }) => <Written>{bizId}</Written> },
      { label: fields.wallet, cell: ({ walletId }) => <WalletLink workspaceId={workspaceId} walletId={walletId} /> },
      { label: fields.status, cell: ({ status }) => <Status of={status} />, sort: 'status' },
      { label: fields.amount, cell: hold => amount(hold.amount, hold.currency), isNumeric: true, sort: 'amount' },
      { label: holds.captured, cell: hold => amount(hold.capturedAmount, hold.currency), isNumeric: true },
      { label: holds.remaining, cell: hold => amount(hold.remainingAmount, hold.currency), isNumeric: true },
      { label: holds.expires, cell: ({ expiresAt }) => <Time at={expiresAt} /> },
      {
        label: fields.actions,
        cell: hold =>
          hold.status === 'OPEN' && mayChange ? (
            <Button size="compact-sm" variant="default" onClick={() => release(hold)}>
              {holds.release}
            </Button>
          ) : (
            <PageLink to="/transfers" search={{ workspace: workspaceId, holdId: hold.holdId }}>
              {holds.captures}
            </PageLink>
          ),
      },
    ]
  }
}

function ReleaseForm({ workspaceId, hold, onClose }: { workspaceId: string; hold: Hold; onClose: () => void }) {
  const { holds } = useText()
  const run = useCommand()
  const { holdId, remainingAmount, currency } = hold
  return (
    <ActionForm
      title={holds.release}
      about={holds.releaseAbout(`${amountText(remainingAmount, currency)} ${currency}`)}
      isDangerous
      onSubmit={reason => run('holds.release', { workspaceId, holdId, ...reason })}
      onClose={onClose}
    />
  )
}
