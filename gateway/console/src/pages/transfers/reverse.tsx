import { TextInput } from '@mantine/core'
import type { Decimal, TransferRecord } from '@workspace-wallet/contract'
import { useState } from 'react'
import { newBizId } from '../../api/biz-ids.ts'
import { ActionForm, type Reason } from '../../components/action-form.tsx'
import { amountText } from '../../components/amount.tsx'
import { AmountInput } from '../../components/amount-input.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useCommand } from '../../session/calls.ts'

type ReverseProps = { transfer: TransferRecord; remaining: Decimal; onClose: () => void }

/** Moves what is left of a transfer, or a part of it, back to where it came from. */
export function ReverseForm({ transfer, remaining, onClose }: ReverseProps) {
  const { transfers, fields } = useText()
  const run = useCommand()
  const { workspaceId, transferId, currency } = transfer
  const [bizId] = useState(newBizId)
  const [amount, setAmount] = useState(() => amountText(remaining, currency))
  const [remark, setRemark] = useState('')

  const reverse = (reason: Reason) =>
    run('transfers.reverse', {
      workspaceId,
      reversal: { reversesTransferId: transferId, amount, currency, bizId, ...(remark !== '' && { remark }) },
      ...reason,
    })

  return (
    <ActionForm
      title={transfers.reverse}
      about={transfers.reverseAbout(`${amountText(remaining, currency)} ${currency}`)}
      isDangerous
      onSubmit={reverse}
      onClose={onClose}
    >
      <AmountInput label={fields.amount} currency={currency} value={amount} onChange={setAmount} />
      <TextInput
        label={fields.remark}
        description={transfers.remarkAbout}
        maxLength={256}
        value={remark}
        onChange={event => setRemark(event.currentTarget.value)}
      />
    </ActionForm>
  )
}
