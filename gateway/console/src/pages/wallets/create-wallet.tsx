import { TextInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import { useState } from 'react'
import { newBizId } from '../../api/biz-ids.ts'
import { ActionForm } from '../../components/action-form.tsx'
import { CurrencySelect } from '../../components/currency-select.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useCommand } from '../../session/calls.ts'

export function CreateWalletForm({ workspaceId, onClose }: { workspaceId: string; onClose: () => void }) {
  const { wallets, fields } = useText()
  const run = useCommand()
  const navigate = useNavigate()
  const [bizId] = useState(newBizId)
  const [name, setName] = useState('')
  const [currency, setCurrency] = useState('')

  async function create(): Promise<void> {
    const { walletId } = await run('wallets.create', { workspaceId, name, currency, bizId })
    await navigate({ to: '/wallets/$walletId', params: { walletId }, search: { workspace: workspaceId } })
  }

  return (
    <ActionForm title={wallets.create} about={wallets.createAbout} onSubmit={create} onClose={onClose}>
      <TextInput
        label={fields.name}
        required
        maxLength={256}
        value={name}
        onChange={event => setName(event.currentTarget.value)}
        data-autofocus
      />
      <CurrencySelect value={currency} onChange={setCurrency} />
    </ActionForm>
  )
}
