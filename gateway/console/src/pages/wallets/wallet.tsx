import { useParams } from '@tanstack/react-router'
import type { Wallet } from '@workspace-wallet/contract'
import { Amount, widestFraction } from '../../components/amount.tsx'
import { Written } from '../../components/data-table.tsx'
import { Facts } from '../../components/facts.tsx'
import { Id } from '../../components/id.tsx'
import { LimitsSection } from '../../components/limits.tsx'
import { WorkspaceLink } from '../../components/links.tsx'
import { Loaded } from '../../components/loaded.tsx'
import { Page } from '../../components/page.tsx'
import { listSearch, optionalText, optionalTime } from '../../components/record-list.tsx'
import { Status } from '../../components/status.tsx'
import { Time } from '../../components/time.tsx'
import { InWorkspace } from '../../components/workspace-picker.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useRead } from '../../session/calls.ts'
import { BalanceChart } from './balance-chart.tsx'
import { FlowsSection } from './flows.tsx'
import { IntegritySection } from './integrity.tsx'
import { OpenHoldsSection } from './open-holds.tsx'
import { StatementSection } from './statement.tsx'
import { WalletActions } from './wallet-actions.tsx'

export const walletSearch = listSearch.extend({
  direction: optionalText,
  type: optionalText,
  createdFrom: optionalTime,
  createdTo: optionalTime,
})

/** One wallet: what it holds, how that came about, and what an operator can do with it. */
export function WalletPage() {
  const { walletId } = useParams({ from: '/wallets/$walletId' })
  const { wallets } = useText()
  return (
    <InWorkspace isHidden title={wallets.wallet}>
      {workspaceId => <WalletOf workspaceId={workspaceId} walletId={walletId} />}
    </InWorkspace>
  )
}

type WalletProps = { workspaceId: string; walletId: string }

function WalletOf({ workspaceId, walletId }: WalletProps) {
  const { wallets } = useText()
  const wallet = useRead('wallets.get', { workspaceId, walletId })
  return (
    <Page
      title={wallet.data?.name ?? wallets.wallet}
      about={<Id value={walletId} isFull />}
      actions={wallet.data && <WalletActions workspaceId={workspaceId} wallet={wallet.data} />}
    >
      <Loaded result={wallet}>
        {found => (
          <>
            <WalletFacts workspaceId={workspaceId} wallet={found} />
            <BalanceChart workspaceId={workspaceId} wallet={found} />
            <OpenHoldsSection workspaceId={workspaceId} walletId={walletId} />
            <FlowsSection workspaceId={workspaceId} walletId={walletId} />
            <StatementSection workspaceId={workspaceId} walletId={walletId} currency={found.currency} />
            <LimitsSection workspaceId={workspaceId} subject={{ walletId }} currency={found.currency} />
            <IntegritySection workspaceId={workspaceId} walletId={walletId} />
          </>
        )}
      </Loaded>
    </Page>
  )
}

function WalletFacts({ workspaceId, wallet }: { workspaceId: string; wallet: Wallet }) {
  const { fields, wallets } = useText()
  const { walletId, currency, status, bizId, createdAt, updatedAt } = wallet
  const { data: balance } = useRead('wallets.balance', { workspaceId, walletId })
  const fraction = widestFraction([currency])
  const held = balance && <Amount value={balance.held} currency={currency} fraction={fraction} />
  const available = balance && <Amount value={balance.available} currency={currency} fraction={fraction} />
  return (
    <Facts
      facts={[
        [fields.status, <Status key="status" of={status} />],
        [fields.balance, <Amount key="balance" value={wallet.balance} currency={currency} fraction={fraction} />],
        [wallets.held, held],
        [wallets.available, available],
        [wallets.flowCount, balance?.sequence],
        [fields.bizId, <Written key="bizId">{bizId}</Written>],
        [fields.workspace, <WorkspaceLink key="workspace" workspaceId={workspaceId} />],
        [fields.created, <Time key="created" at={createdAt} />],
        [fields.updated, <Time key="updated" at={updatedAt} />],
      ]}
    />
  )
}
