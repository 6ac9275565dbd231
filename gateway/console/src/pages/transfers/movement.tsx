import type { TracedFlow, TracedTransfer } from '@workspace-wallet/contract'
import { Amount } from '../../components/amount.tsx'
import { Written } from '../../components/data-table.tsx'
import { WalletLink } from '../../components/links.tsx'
import { Tag } from '../../components/status.tsx'
import { useText } from '../../preferences/preferences.tsx'

/** A drawing of the money that moved from one wallet to another, with the balance that each had afterwards. */
export function MoneyMovement({ traced: { transfer, source, target } }: { traced: TracedTransfer }) {
  const { transfers } = useText()
  const { amount, currency, workspaceId } = transfer
  const side = { workspaceId, currency }
  return (
    <section className="movement" aria-label={transfers.movement}>
      <Side name={transfers.source} flow={source} {...side} />
      <div className="movement-amount">
        <strong>
          <Amount value={amount} currency={currency} />
        </strong>
        <svg viewBox="0 0 160 16" aria-hidden="true" className="movement-arrow">
          <path d="M2 8H152M144 2l10 6-10 6" />
        </svg>
      </div>
      <Side name={transfers.target} flow={target} {...side} />
    </section>
  )
}

type SideProps = { name: string; workspaceId: string; currency: string; flow: TracedFlow }

function Side({ name, workspaceId, currency, flow }: SideProps) {
  const { transfers } = useText()
  const { walletId, walletName, sequence, balanceAfter, isGenuine } = flow
  return (
    <div className="movement-side">
      <span className="movement-name">{name}</span>
      {walletId === null ? (
        <strong>{transfers.outside}</strong>
      ) : (
        <>
          <strong>
            <Written>{walletName}</Written>
          </strong>
          <WalletLink workspaceId={workspaceId} walletId={walletId} />
        </>
      )}
      {balanceAfter && (
        <span>
          {transfers.balanceAfter} <Amount value={balanceAfter} currency={currency} />
        </span>
      )}
      <span>
        {transfers.flow(sequence)}{' '}
        <Tag tone={isGenuine ? 'good' : 'bad'}>{isGenuine ? transfers.genuine : transfers.modified}</Tag>
      </span>
    </div>
  )
}
