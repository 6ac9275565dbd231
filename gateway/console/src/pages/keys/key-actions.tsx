import { Button, Checkbox, NumberInput, TagsInput } from '@mantine/core'
import { useNavigate } from '@tanstack/react-router'
import type { KeyRecord } from '@workspace-wallet/contract'
import { useState } from 'react'
import { ActionForm, type Reason } from '../../components/action-form.tsx'
import { TimeInput } from '../../components/time-input.tsx'
import { useText } from '../../preferences/preferences.tsx'
import { useCommand } from '../../session/calls.ts'
import { type Issued, IssuedKey } from './issued-key.tsx'
import { ScopesInput } from './scopes-input.tsx'

type Action = 'rotate' | 'disable' | 'enable' | 'setExpiry' | 'setScopes' | 'setIps' | 'delete'
type FormProps = { record: KeyRecord; onClose: () => void }

const forms: Record<Action, (props: FormProps) => React.ReactNode> = {
  rotate: RotateForm,
  disable: props => <SimpleForm action="disable" {...props} />,
  enable: props => <SimpleForm action="enable" {...props} />,
  delete: props => <SimpleForm action="delete" {...props} />,
  setExpiry: ExpiryForm,
  setScopes: ScopesForm,
  setIps: AddressesForm,
}

/** Everything that an operator can do with a key. */
export function KeyActions({ record }: { record: KeyRecord }) {
  const { keys } = useText()
  const [action, setAction] = useState<Action | null>(null)
  const possible: Action[] = record.isModified
    ? ['delete']
    : ['rotate', record.status === 'ACTIVE' ? 'disable' : 'enable', 'setExpiry', 'setScopes', 'setIps', 'delete']
  const Form = action && forms[action]
  return (
    <>
      {possible.map(each => (
        <Button key={each} variant="default" onClick={() => setAction(each)}>
          {keys.actions[each].name}
        </Button>
      ))}
      {Form && <Form record={record} onClose={() => setAction(null)} />}
    </>
  )
}

/** Replaces the secret. Both are valid for a grace period, if one is chosen. */
function RotateForm({ record: { apiKey }, onClose }: FormProps) {
  const { keys } = useText()
  const run = useCommand()
  const [hours, setHours] = useState<number | string>(24)
  const [force, setForce] = useState(false)
  const [issued, setIssued] = useState<Issued | null>(null)
  const rotate = async (reason: Reason) => {
    const graceMs = Math.round(Number(hours) * 3_600_000)
    setIssued(await run('apiKeys.rotate', { apiKey, graceMs, force, ...reason }))
  }
  if (issued) return <IssuedKey title={keys.rotated} issued={issued} onClose={onClose} />
  return (
    <ActionForm
      title={keys.actions.rotate.name}
      about={keys.actions.rotate.about}
      isDangerous
      onSubmit={rotate}
      staysOpen
      onClose={onClose}
    >
      <NumberInput
        label={keys.graceHours}
        description={keys.graceAbout}
        min={0}
        max={720}
        required
        value={hours}
        onChange={setHours}
      />
      <Checkbox label={keys.forceRotate} checked={force} onChange={event => setForce(event.currentTarget.checked)} />
    </ActionForm>
  )
}

function SimpleForm({
  action,
  record: { apiKey, workspaceId },
  onClose,
}: FormProps & { action: 'disable' | 'enable' | 'delete' }) {
  const { keys } = useText()
  const run = useCommand()
  const navigate = useNavigate()
  const { name, about } = keys.actions[action]
  async function change(reason: Reason): Promise<void> {
    await run(`apiKeys.${action}`, { apiKey, ...reason })
    if (action === 'delete') await navigate({ to: '/keys', search: { workspace: workspaceId } })
  }
  return <ActionForm title={name} about={about} isDangerous onSubmit={change} onClose={onClose} />
}

function ExpiryForm({ record: { apiKey, expiresAt }, onClose }: FormProps) {
  const { keys } = useText()
  const run = useCommand()
  const [at, setAt] = useState(expiresAt?.toISOString() ?? '')
  const { name, about } = keys.actions.setExpiry
  return (
    <ActionForm
      title={name}
      about={about}
      isDangerous
      onSubmit={reason => run('apiKeys.setExpiry', { apiKey, expiresAt: at === '' ? null : new Date(at), ...reason })}
      onClose={onClose}
    >
      <TimeInput label={keys.expires} description={keys.expiresAbout} value={at} onChange={setAt} />
    </ActionForm>
  )
}

function ScopesForm({ record: { apiKey, scopes }, onClose }: FormProps) {
  const { keys } = useText()
  const run = useCommand()
  const [granted, setGranted] = useState(scopes)
  const { name, about } = keys.actions.setScopes
  return (
    <ActionForm
      title={name}
      about={about}
      isDangerous
      onSubmit={reason => run('apiKeys.setScopes', { apiKey, scopes: granted, ...reason })}
      onClose={onClose}
    >
      <ScopesInput value={granted} onChange={setGranted} />
    </ActionForm>
  )
}

function AddressesForm({ record: { apiKey, ipAllowlist }, onClose }: FormProps) {
  const { keys } = useText()
  const run = useCommand()
  const [addresses, setAddresses] = useState(ipAllowlist)
  const { name, about } = keys.actions.setIps
  return (
    <ActionForm
      title={name}
      about={about}
      isDangerous
      onSubmit={reason => run('apiKeys.setIps', { apiKey, ipAllowlist: addresses, ...reason })}
      onClose={onClose}
    >
      <TagsInput label={keys.addresses} description={keys.addressesAbout} value={addresses} onChange={setAddresses} />
    </ActionForm>
  )
}
