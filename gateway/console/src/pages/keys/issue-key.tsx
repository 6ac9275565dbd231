import { TagsInput, TextInput } from '@mantine/core'
import { type Scope, scopes } from '@workspace-wallet/contract'
import { useState } from 'react'
import { ActionForm, type Reason } from '../../components/action-form.tsx'
import { TimeInput } from '../../components/time-input.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useCommand } from '../../session/calls.ts'
import { type Issued, IssuedKey } from './issued-key.tsx'
import { ScopesInput } from './scopes-input.tsx'

/** Issues a key, and shows its secret once. */
export function IssueKeyForm({ workspaceId, onClose }: { workspaceId: string; onClose: () => void }) {
  const { keys, fields } = useText()
  const run = useCommand()
  const [name, setName] = useState('')
  const [ownerUserId, setOwner] = useState('')
  const [granted, setGranted] = useState<Scope[]>(scopes.filter(scope => scope.endsWith(':read')))
  const [ipAllowlist, setAddresses] = useState<string[]>([])
  const [expiresAt, setExpiry] = useState('')
  const [issued, setIssued] = useState<Issued | null>(null)

  async function issue(reason: Reason): Promise<void> {
    setIssued(
      await run('apiKeys.create', {
        workspaceId,
        name,
        ownerUserId,
        scopes: granted,
        ipAllowlist,
        ...(expiresAt !== '' && { expiresAt: new Date(expiresAt) }),
        ...reason,
      }),
    )
  }

  if (issued) return <IssuedKey title={keys.issued} issued={issued} onClose={onClose} />
  return (
    <ActionForm title={keys.issue} about={keys.issueAbout} asksReason onSubmit={issue} staysOpen onClose={onClose}>
      <TextInput
        label={fields.name}
        description={keys.nameAbout}
        maxLength={256}
        value={name}
        onChange={event => setName(event.currentTarget.value)}
        data-autofocus
      />
      <TextInput
        label={keys.owner}
        description={keys.ownerAbout}
        required
        value={ownerUserId}
        onChange={event => setOwner(event.currentTarget.value)}
      />
      <ScopesInput value={granted} onChange={setGranted} />
      <TagsInput label={keys.addresses} description={keys.addressesAbout} value={ipAllowlist} onChange={setAddresses} />
      <TimeInput label={keys.expires} description={keys.expiresAbout} value={expiresAt} onChange={setExpiry} />
    </ActionForm>
  )
}
