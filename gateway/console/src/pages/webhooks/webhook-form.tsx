import { NumberInput } from '@mantine/core'
import type { Webhook } from '@workspace-wallet/contract'
import { useState } from 'react'
import { ActionForm, type Reason } from '../../components/action-form.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useCommand } from '../../session/calls.ts'

export type WebhookAction = 'pause' | 'resume' | 'seek' | 'delete'

type WebhookFormProps = {
  workspaceId: string
  webhook: Webhook
  action: WebhookAction
  /** The position of the last event. */
  head: number | undefined
  onClose: () => void
}

export function WebhookForm({ workspaceId, webhook, action, head, onClose }: WebhookFormProps) {
  const { webhooks } = useText()
  const run = useCommand()
  const { webhookId, position } = webhook
  const [after, setAfter] = useState<number | string>(position)
  const { name, about } = webhooks.actions[action]

  function change(reason: Reason): Promise<unknown> {
    const of = { workspaceId, webhookId, ...reason }
    if (action === 'seek') return run('webhooks.seek', { ...of, after: Number(after) })
    if (action === 'delete') return run('webhooks.delete', of)
    return run('webhooks.update', { ...of, status: action === 'pause' ? 'PAUSED' : 'ACTIVE' })
  }

  return (
    <ActionForm title={name} about={about} isDangerous onSubmit={change} onClose={onClose}>
      {action === 'seek' && (
        <NumberInput
          label={webhooks.after}
          description={webhooks.afterAbout(head ?? 0)}
          min={0}
          {...(head !== undefined && { max: head })}
          allowDecimal={false}
          required
          value={after}
          onChange={setAfter}
        />
      )}
    </ActionForm>
  )
}
