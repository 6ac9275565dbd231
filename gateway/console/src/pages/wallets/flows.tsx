import { type Flow, flowDirections, transferTypes } from '@workspace-wallet/contract'
import { Amount, widestFraction } from '../../components/amount.tsx'
import type { Column } from '../../components/data-table.tsx'
import { TransferLink, WalletLink } from '../../components/links.tsx'
import { Empty, Section } from '../../components/page.tsx'
import { filterOf, RecordList, useList } from '../../components/record-list.tsx'
import { Time } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'

type FlowsProps = { workspaceId: string; walletId: string }

/** What went into the wallet and out of it. */
export function FlowsSection({ workspaceId, walletId }: FlowsProps) {
  const text = useText()
  const { search, request } = useList<'createdAt'>()
  const filter = filterOf(search, ['direction', 'type', 'createdFrom', 'createdTo'])
  const result = useRead('wallets.flows', { workspaceId, walletId, filter, ...request })
  const { wallets, fields } = text
  const columnsOf = (rows: readonly Flow[]): Column<Flow>[] => {
    const fraction = widestFraction(rows.map(({ currency }) => currency))
    return [
      { label: '#', cell: ({ sequence }) => sequence, isNumeric: true },
      { label: fields.time, cell: ({ createdAt }) => <Time at={createdAt} />, sort: 'createdAt' },
      { label: fields.type, cell: ({ type }) => wallets.types[type] },
      {
        label: fields.amount,
        cell: ({ amount, currency, direction }) => (
          <Amount value={amount} currency={currency} fraction={fraction} sign={direction === 'IN' ? '+' : '−'} />
        ),
        isNumeric: true,
        sort: 'amount',
      },
      {
        label: wallets.balanceAfter,
        cell: ({ balanceAfter, currency }) => <Amount value={balanceAfter} currency={currency} fraction={fraction} />,
        isNumeric: true,
      },
      {
        label: wallets.counterparty,
        cell: ({ counterpartyWalletId: other }) =>
          other === null ? wallets.outside : <WalletLink workspaceId={workspaceId} walletId={other} />,
      },
      {
        label: fields.transfer,
        cell: ({ transferId }) => <TransferLink workspaceId={workspaceId} transferId={transferId} />,
      },
    ]
  }
  return (
    <Section title={wallets.flows}>
      <RecordList
        label={wallets.flows}
        result={result}
        rowKey={({ flowId }) => flowId}
        columns={columnsOf}
        empty={<Empty>{wallets.noFlows}</Empty>}
        fields={[
          {
            name: 'direction',
            label: wallets.direction,
            options: flowDirections.map(each => [each, wallets.directions[each]]),
          },
          { name: 'type', label: fields.type, options: transferTypes.map(each => [each, wallets.types[each]]) },
          { name: 'createdFrom', label: text.filters.from, type: 'time' },
          { name: 'createdTo', label: text.filters.to, type: 'time' },
        ]}
      />
    </Section>
  )
}
