import { currencyDecimals, type TransferOrder } from '@workspace-wallet/contract'
import { Amount, widestFraction } from '../../components/amount.tsx'
import { type Column, Written } from '../../components/data-table.tsx'
import { TransferLink, WalletLink } from '../../components/links.tsx'
import { Empty, Page } from '../../components/page.tsx'
import { filterOf, listSearch, optionalText, optionalTime, RecordList, useList } from '../../components/record-list.tsx'
import { Time } from '../../components/time.tsx'
import { InWorkspace } from '../../components/workspace-picker.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'

const filters = [
  'transferIdPrefix',
  'bizIdPrefix',
  'reference',
  'holdId',
  'batchId',
  'reversesTransferId',
  'currency',
  'createdFrom',
  'createdTo',
] as const

export const transfersSearch = listSearch.extend({
  wallet: optionalText,
  transferIdPrefix: optionalText,
  bizIdPrefix: optionalText,
  reference: optionalText,
  holdId: optionalText,
  batchId: optionalText,
  reversesTransferId: optionalText,
  currency: optionalText,
  createdFrom: optionalTime,
  createdTo: optionalTime,
})

/** The transfers between the wallets of a workspace. */
export function TransfersPage() {
  const { navigation, transfers } = useText()
  return (
    <Page title={navigation.transfers} about={transfers.about}>
      <InWorkspace>{workspaceId => <Transfers workspaceId={workspaceId} />}</InWorkspace>
    </Page>
  )
}

function Transfers({ workspaceId }: { workspaceId: string }) {
  const text = useText()
  const { transfers, fields } = text
  const { search, request } = useList<'createdAt'>()
  const { wallet } = search
  const result = useRead('transfers.list', {
    workspaceId,
    ...(typeof wallet === 'string' && { walletId: wallet }),
    filter: filterOf(search, filters),
    ...request,
  })
  return (
    <RecordList
      label={text.navigation.transfers}
      result={result}
      rowKey={({ transferId }) => transferId}
      columns={useTransferColumns(workspaceId)}
      empty={<Empty>{transfers.empty}</Empty>}
      fields={[
        { name: 'transferIdPrefix', label: transfers.idPrefix, placeholder: 'trf_…' },
        { name: 'bizIdPrefix', label: transfers.bizIdPrefix },
        { name: 'wallet', label: fields.wallet, placeholder: 'wal_…' },
        { name: 'reference', label: fields.reference },
        { name: 'currency', label: fields.currency, options: [...currencyDecimals.keys()].map(code => [code, code]) },
        { name: 'createdFrom', label: text.filters.from, type: 'time' },
        { name: 'createdTo', label: text.filters.to, type: 'time' },
      ]}
    />
  )
}

function useTransferColumns(workspaceId: string): (rows: readonly TransferOrder[]) => Column<TransferOrder>[] {
  const { transfers, fields } = useText()
  return rows => {
    const fraction = widestFraction(rows.map(({ currency }) => currency))
    return [
      { label: fields.time, cell: ({ createdAt }) => <Time at={createdAt} />, sort: 'createdAt' },
      {
        label: fields.transfer,
        cell: ({ transferId }) => <TransferLink workspaceId={workspaceId} transferId={transferId} />,
      },
      { label: fields.bizId, cell: ({ bizId }) => <Written>{bizId}</Written> },
      {
        label: transfers.source,
        cell: ({ sourceWalletId }) => <WalletLink workspaceId={workspaceId} walletId={sourceWalletId} />,
      },
      {
        label: transfers.target,
        cell: ({ targetWalletId }) => <WalletLink workspaceId={workspaceId} walletId={targetWalletId} />,
      },
      {
        label: fields.amount,
        cell: ({ amount, currency }) => <Amount value={amount} currency={currency} fraction={fraction} />,
        isNumeric: true,
        sort: 'amount',
      },
      { label: fields.reference, cell: ({ reference }) => <Written>{reference}</Written> },
    ]
  }
}
