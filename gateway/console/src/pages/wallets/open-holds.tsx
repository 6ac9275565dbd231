import { Amount, widestFraction } from '../../components/amount.tsx'
import { DataTable, Written } from '../../components/data-table.tsx'
import { Id } from '../../components/id.tsx'
import { PageLink } from '../../components/links.tsx'
import { Section } from '../../components/page.tsx'
import { Time } from '../../components/time.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'

/** The holds that reserve a part of the wallet now. */
export function OpenHoldsSection({ workspaceId, walletId }: { workspaceId: string; walletId: string }) {
  const { wallets, fields, holds } = useText()
  const result = useRead('holds.list', { workspaceId, walletId, filter: { status: 'OPEN' } })
  const open = result.data?.content ?? []
  if (open.length === 0) return null
  const fraction = widestFraction(open.map(({ currency }) => currency))
  return (
    <Section
      title={wallets.openHolds}
      actions={
        <PageLink to="/holds" search={{ workspace: workspaceId, wallet: walletId }}>
          {wallets.allHolds}
        </PageLink>
      }
    >
      <DataTable
        label={wallets.openHolds}
        rows={open}
        rowKey={({ holdId }) => holdId}
        empty={null}
        columns={[
          { label: fields.id, cell: ({ holdId }) => <Id value={holdId} /> },
          { label: fields.bizId, cell: ({ bizId }) => <Written>{bizId}</Written> },
          {
            label: holds.remaining,
            cell: ({ remainingAmount, currency }) => (
              <Amount value={remainingAmount} currency={currency} fraction={fraction} />
            ),
            isNumeric: true,
          },
          { label: holds.expires, cell: ({ expiresAt }) => <Time at={expiresAt} /> },
        ]}
      />
    </Section>
  )
}
