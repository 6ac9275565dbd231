import { Button, Select, TextInput } from '@mantine/core'
import type { Wallet, WalletStatus } from '@workspace-wallet/contract'
import { useState } from 'react'
import { newBizId } from '../../api/biz-ids.ts'
import { ActionForm, type Reason } from '../../components/action-form.tsx'
import { AmountInput } from '../../components/amount-input.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useCommand, useRead } from '../../session/calls.ts'
import { useSession } from '../../session/session.tsx'

type Action = 'deposit' | 'withdraw' | WalletStatus
type ActionProps = { workspaceId: string; wallet: Wallet }

/** The statuses that a wallet can get from its present one. */
const nextStatuses: Record<WalletStatus, WalletStatus[]> = {
  ACTIVE: ['FROZEN', 'CLOSED'],
  FROZEN: ['ACTIVE', 'CLOSED'],
  CLOSED: [],
}

/** Deposit, withdraw, freeze and close: what the token and the status of the wallet allow. */
export function WalletActions({ workspaceId, wallet }: ActionProps) {
  const { wallets } = useText()
  const { mayChange } = useSession()
  const [action, setAction] = useState<Action | null>(null)
  const close = () => setAction(null)
  const isOpen = wallet.status === 'ACTIVE'
  return (
    <>
      {isOpen && mayChange && (
        <Button variant="default" onClick={() => setAction('deposit')}>
          {wallets.deposit}
        </Button>
      )}
      {isOpen && mayChange && (
        <Button variant="default" onClick={() => setAction('withdraw')}>
          {wallets.withdraw}
        </Button>
      )}
      {mayChange &&
        nextStatuses[wallet.status].map(status => (
          <Button key={status} variant="default" onClick={() => setAction(status)}>
            {wallets.changes[status].name}
          </Button>
        ))}
      {(action === 'deposit' || action === 'withdraw') && (
        <FundingForm workspaceId={workspaceId} wallet={wallet} type={action} onClose={close} />
      )}
      {action !== null && action !== 'deposit' && action !== 'withdraw' && (
        <StatusForm workspaceId={workspaceId} wallet={wallet} status={action} onClose={close} />
      )}
    </>
  )
}

type FundingProps = ActionProps & { type: 'deposit' | 'withdraw'; onClose: () => void }

/** Money enters or leaves the workspace. The bizId is made when the form opens, so that it happens once. */
function FundingForm({ workspaceId, wallet, type, onClose }: FundingProps) {
  const { wallets, fields } = useText()
  const run = useCommand()
  const [amount, setAmount] = useState('')
  const [bizId, setBizId] = useState(newBizId)
  const [holdId, setHoldId] = useState<string | null>(null)
  const { walletId, currency, name } = wallet
  const isDeposit = type === 'deposit'

  function fund(reason: Reason): Promise<unknown> {
    const input = { workspaceId, walletId, amount, bizId, ...reason }
    if (isDeposit) return run('wallets.deposit', input)
    return run('wallets.withdraw', { ...input, ...(holdId !== null && { holdId }) })
  }

  return (
    <ActionForm
      title={isDeposit ? wallets.deposit : wallets.withdraw}
      about={isDeposit ? wallets.depositAbout(name) : wallets.withdrawAbout(name)}
      isDangerous
      onSubmit={fund}
      onClose={onClose}
    >
      <AmountInput label={fields.amount} currency={currency} value={amount} onChange={setAmount} />
      {!isDeposit && <HoldSelect workspaceId={workspaceId} walletId={walletId} value={holdId} onChange={setHoldId} />}
      <TextInput
        label={fields.bizId}
        description={wallets.bizIdAbout}
        required
        value={bizId}
        onChange={event => setBizId(event.currentTarget.value)}
      />
    </ActionForm>
  )
}

type HoldSelectProps = {
  workspaceId: string
  walletId: string
  value: string | null
  onChange: (holdId: string | null) => void
}

function HoldSelect({ workspaceId, walletId, value, onChange }: HoldSelectProps) {
  const { wallets } = useText()
  const holds = useRead('holds.list', { workspaceId, walletId, filter: { status: 'OPEN' }, size: 100 })
  const open = holds.data?.content ?? []
  if (open.length === 0) return null
  return (
    <Select
      label={wallets.fromHold}
      clearable
      value={value}
      onChange={onChange}
      data={open.map(({ holdId, bizId, remainingAmount, currency }) => ({
        value: holdId,
        label: `${bizId} – ${remainingAmount.toFixed()} ${currency}`,
      }))}
    />
  )
}

type StatusProps = ActionProps & { status: WalletStatus; onClose: () => void }

function StatusForm({ workspaceId, wallet: { walletId, name }, status, onClose }: StatusProps) {
  const { wallets } = useText()
  const run = useCommand()
  const change = wallets.changes[status]
  return (
    <ActionForm
      title={change.name}
      about={change.about(name)}
      isDangerous
      onSubmit={reason => run('wallets.changeStatus', { workspaceId, walletId, status, ...reason })}
      onClose={onClose}
    />
  )
}
