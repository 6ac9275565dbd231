import { Button } from '@mantine/core'
import { currencyDecimals, type Wallet, walletStatuses } from '@workspace-wallet/contract'
import { useState } from 'react'
import { Amount, widestFraction } from '../../components/amount.tsx'
import { type Column, Written } from '../../components/data-table.tsx'
import { WalletLink } from '../../components/links.tsx'
import { Empty, Page } from '../../components/page.tsx'
import { filterOf, listSearch, optionalText, optionalTime, RecordList, useList } from '../../components/record-list.tsx'
import { Status } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { InWorkspace, useWorkspaceId } from '../../components/workspace-picker.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'
import { useSession } from '../../session/session.tsx'
import { CreateWalletForm } from './create-wallet.tsx'

const filters = ['walletIdPrefix', 'currency', 'status', 'createdFrom', 'createdTo'] as const

export const walletsSearch = listSearch.extend({
  walletIdPrefix: optionalText,
  currency: optionalText,
  status: optionalText,
  createdFrom: optionalTime,
  createdTo: optionalTime,
})

/** The wallets of a workspace. */
export function WalletsPage() {
  const { navigation, wallets } = useText()
  const { mayChange } = useSession()
  const chosen = useWorkspaceId()
  const [isCreating, setCreating] = useState(false)
  const create = chosen && mayChange && <Button onClick={() => setCreating(true)}>{wallets.create}</Button>
  return (
    <Page title={navigation.wallets} about={wallets.about} actions={create}>
      <InWorkspace>{workspaceId => <Wallets workspaceId={workspaceId} />}</InWorkspace>
      {isCreating && chosen && <CreateWalletForm workspaceId={chosen} onClose={() => setCreating(false)} />}
    </Page>
  )
}

function Wallets({ workspaceId }: { workspaceId: string }) {
  const text = useText()
  const { search, request } = useList<'createdAt'>()
  const result = useRead('wallets.list', { workspaceId, filter: filterOf(search, filters), ...request })
  const { wallets, fields } = text
  const columnsOf = (rows: readonly Wallet[]): Column<Wallet>[] => {
    const fraction = widestFraction(rows.map(({ currency }) => currency))
    return [
      { label: fields.name, cell: ({ name }) => <Written>{name}</Written>, sort: 'name' },
      { label: fields.id, cell: ({ walletId }) => <WalletLink workspaceId={workspaceId} walletId={walletId} /> },
      { label: fields.status, cell: ({ status }) => <Status of={status} />, sort: 'status' },
      {
        label: fields.balance,
        cell: ({ balance, currency }) => <Amount value={balance} currency={currency} fraction={fraction} />,
        isNumeric: true,
        sort: 'amount',
      },
      { label: fields.created, cell: ({ createdAt }) => <Time at={createdAt} />, sort: 'createdAt' },
    ]
  }
  return (
    <RecordList
      label={text.navigation.wallets}
      result={result}
      rowKey={({ walletId }) => walletId}
      columns={columnsOf}
      empty={<Empty>{wallets.empty}</Empty>}
      fields={[
        { name: 'walletIdPrefix', label: wallets.idPrefix, placeholder: 'wal_…' },
        { name: 'currency', label: fields.currency, options: [...currencyDecimals.keys()].map(code => [code, code]) },
        { name: 'status', label: fields.status, options: walletStatuses.map(each => [each, text.statuses[each]]) },
        { name: 'createdFrom', label: text.filters.from, type: 'time' },
        { name: 'createdTo', label: text.filters.to, type: 'time' },
      ]}
    />
  )
}
