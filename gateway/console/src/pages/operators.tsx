import { Button, Group, NativeSelect, TextInput } from '@mantine/core'
import { type IssuedOperator, type OperatorRecord, type OperatorRole, operatorRoles } from '@workspace-wallet/contract'
import { useState } from 'react'
import { z } from 'zod'
import { ActionForm, type Reason } from '../components/action-form.tsx'
import { CursorPager } from '../components/cursor-pager.tsx'
import { type Column, DataTable, Written } from '../components/data-table.tsx'
import { Loaded } from '../components/loaded.tsx'
import { Empty, Page } from '../components/page.tsx'
import { optionalText, useList } from '../components/record-list.tsx'
import { ShownOnce } from '../components/shown-once.tsx'
import { Status, Tag } from '../components/status.tsx'
import { Time } from '../components/time.tsx'
import { TimeInput } from '../components/time-input.tsx'
import { useText } from '../preferences/preferences.tsx'
import { useCommand, useRead } from '../session/calls.ts'
import { useSession } from '../session/session.tsx'

export const operatorsSearch = z.object({ after: optionalText })

const pageSize = 50

type Action = { name: 'create' } | { name: 'rotate' | 'disable'; operator: OperatorRecord }

/** People who operate the service, each with a token of their own. */
export function OperatorsPage() {
  const { navigation, operators } = useText()
  const { mayChange } = useSession()
  const { search } = useList()
  const { after } = search
  const [action, setAction] = useState<Action | null>(null)
  const result = useRead('operators.list', { limit: pageSize, ...(typeof after === 'string' && { after }) })
  const columns = useColumns(setAction)
  const close = () => setAction(null)
  const create = mayChange && <Button onClick={() => setAction({ name: 'create' })}>{operators.create}</Button>
  return (
    <Page title={navigation.operators} about={operators.about} actions={create}>
      <Loaded result={result}>
        {({ operators: found, next }) => (
          <>
            <DataTable
              label={navigation.operators}
              rows={found}
              columns={columns}
              rowKey={({ name }) => name}
              empty={<Empty>{operators.empty}</Empty>}
            />
            <CursorPager next={next} />
          </>
        )}
      </Loaded>
      {action?.name === 'create' && <CreateForm onClose={close} />}
      {action?.name === 'rotate' && <RotateForm operator={action.operator} onClose={close} />}
      {action?.name === 'disable' && <DisableForm operator={action.operator} onClose={close} />}
    </Page>
  )
}

function useColumns(choose: (action: Action) => void): Column<OperatorRecord>[] {
  const { operators, fields, keys } = useText()
  const { mayChange } = useSession()
  return [
    { label: fields.name, cell: ({ name }) => <Written>{name}</Written> },
    { label: operators.role, cell: ({ role }) => operators.roles[role] },
    {
      label: fields.status,
      cell: ({ status, isModified }) => (isModified ? <Tag tone="bad">{keys.modified}</Tag> : <Status of={status} />),
    },
    { label: keys.expires, cell: ({ expiresAt }) => (expiresAt ? <Time at={expiresAt} /> : keys.neverExpires) },
    { label: fields.created, cell: ({ createdAt }) => <Time at={createdAt} /> },
    {
      label: fields.actions,
      cell: operator =>
        mayChange && (
          <Group gap="xs">
            <Button size="compact-sm" variant="default" onClick={() => choose({ name: 'rotate', operator })}>
              {operators.rotate}
            </Button>
            {operator.status === 'ACTIVE' && (
              <Button size="compact-sm" variant="default" onClick={() => choose({ name: 'disable', operator })}>
                {operators.disable}
              </Button>
            )}
          </Group>
        ),
    },
  ]
}

function CreateForm({ onClose }: { onClose: () => void }) {
  const { operators, fields, keys } = useText()
  const run = useCommand()
  const [name, setName] = useState('')
  const [role, setRole] = useState<OperatorRole>('viewer')
  const [expiresAt, setExpiry] = useState('')
  const [issued, setIssued] = useState<IssuedOperator | null>(null)
  const create = async (reason: Reason) => {
    const expiry = expiresAt !== '' && { expiresAt: new Date(expiresAt) }
    setIssued(await run('operators.create', { name, role, ...expiry, ...reason }))
  }
  if (issued) return <Issued issued={issued} onClose={onClose} />
  return (
    <ActionForm
      title={operators.create}
      about={operators.createAbout}
      asksReason
      onSubmit={create}
      staysOpen
      onClose={onClose}
    >
      <TextInput
        label={fields.name}
        description={operators.nameAbout}
        required
        pattern="[a-z0-9][a-z0-9._@+\-]{0,63}"
        value={name}
        onChange={event => setName(event.currentTarget.value)}
        data-autofocus
      />
      <NativeSelect
        label={operators.role}
        value={role}
        onChange={event => setRole(event.currentTarget.value as OperatorRole)}
        data={operatorRoles.map(each => ({ value: each, label: operators.roles[each] }))}
      />
      <TimeInput label={keys.expires} description={keys.expiresAbout} value={expiresAt} onChange={setExpiry} />
    </ActionForm>
  )
}

type OperatorFormProps = { operator: OperatorRecord; onClose: () => void }

function RotateForm({ operator: { name }, onClose }: OperatorFormProps) {
  const { operators } = useText()
  const run = useCommand()
  const [issued, setIssued] = useState<IssuedOperator | null>(null)
  if (issued) return <Issued issued={issued} onClose={onClose} />
  return (
    <ActionForm
      title={operators.rotate}
      about={operators.rotateAbout(name)}
      isDangerous
      onSubmit={async reason => setIssued(await run('operators.rotate', { name, ...reason }))}
      staysOpen
      onClose={onClose}
    />
  )
}

function DisableForm({ operator: { name }, onClose }: OperatorFormProps) {
  const { operators } = useText()
  const run = useCommand()
  return (
    <ActionForm
      title={operators.disable}
      about={operators.disableAbout(name)}
      isDangerous
      onSubmit={reason => run('operators.disable', { name, ...reason })}
      onClose={onClose}
    />
  )
}

/** A new token, which is shown once. */
function Issued({ issued: { name, token }, onClose }: { issued: IssuedOperator; onClose: () => void }) {
  const { operators, signIn } = useText()
  const values = [{ label: signIn.token, value: token }]
  return <ShownOnce title={operators.issued(name)} about={operators.onlyOnce} values={values} onClose={onClose} />
}
